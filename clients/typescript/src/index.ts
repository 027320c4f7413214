export * from "./verify/index.js";
