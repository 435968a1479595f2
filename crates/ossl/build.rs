//! Nothing to build here: the build dependency on `openssl-src` exists for its features alone.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}
