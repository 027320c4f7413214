# syntax=docker/dockerfile:1

# Built on what it runs on, so that both have one C library.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin countersign && \
    install -D -m 0755 target/release/countersign /out/countersign

FROM debian:bookworm-slim
# The authorities that vouch for an OpenID provider.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/countersign /usr/local/bin/countersign
COPY LICENSE /usr/share/doc/countersign/LICENSE
# A user without a name, a shell or a home. Only /data is ever written to, so the root may be read-only:
#   docker run --read-only -v countersign:/data \
#     -e COUNTERSIGN_TRUSTED_PROXIES=172.17.0.1 -e COUNTERSIGN_PUBLIC_URL=https://gate.example …
# The two variables are needed: inside a container the gateway listens on other than loopback, and then it
# wants a proxy named that speaks TLS in front of it.
RUN install -d -m 0700 -o 65532 -g 65532 /data
USER 65532:65532
VOLUME /data
WORKDIR /data
ENV COUNTERSIGN_DATA=/data COUNTERSIGN_LISTEN=0.0.0.0:8480
EXPOSE 8480
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["countersign", "health"]
ENTRYPOINT ["countersign"]
CMD ["serve"]
