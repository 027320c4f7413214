#![no_main]
libfuzzer_sys::fuzz_target!(|text: &[u8]| countersign_fuzz::episodes::check(text));
