//! `load` and `serve` of the static program, against OpenSSL's programs and each other. Their output has the members of
//! the published schemas of `shakedown load --json` and `shakedown serve --json`.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_shakedown-probe");
const SUITE: &str = "tls1.3/x25519/p256/server";
const LONG: Duration = Duration::from_secs(60);

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("shakedown-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn join(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A child that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program(words: &[&str]) -> Output {
    Command::new(PROGRAM).args(words).output().unwrap()
}

/// Starts a server; returns its address.
fn serve(words: &[&str]) -> (Running, String) {
    let mut command = Command::new(PROGRAM);
    command.arg("serve").args(words).args(["--listen", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}"));
    (Running(child), address.split_whitespace().next().unwrap().to_owned())
}

/// Stops a server gracefully; returns its output.
fn stop(mut server: Running) -> Value {
    let child = &mut server.0;
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let printed: Value = serde_json::from_reader(child.stdout.take().unwrap()).unwrap();
    assert!(child.wait().unwrap().success());
    only(printed, "serving", "Serving")
}

/// The only object of an array, whose members must be those of its schema.
fn only(printed: Value, schema: &str, object: &str) -> Value {
    let [found] = &printed.as_array().unwrap()[..] else { panic!("{printed}") };
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/reference/{schema}.schema.json"));
    let schema: Value = serde_json::from_reader(std::fs::File::open(path).unwrap()).unwrap();
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(found), names(&schema["$defs"][object]["properties"]));
    found.clone()
}

/// Runs OpenSSL's client; returns its output.
fn s_client(address: &str, ca: &str) -> String {
    let mut client = Command::new("openssl")
        .args(["s_client", "-connect", address, "-CAfile", ca, "-verify_return_error", "-brief"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    client.stdin.take().unwrap().write_all(b"Q\n").unwrap();
    let done = client.wait_with_output().unwrap();
    String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()
}

#[test]
fn openssl_client_is_served() {
    let folder = Folder::new("probe-serve");
    let ca = folder.join("ca.pem");
    let (server, address) = serve(&[SUITE, "--cache", &folder.join("keys"), "--ca-out", &ca]);
    let printed = s_client(&address, &ca);
    assert!(printed.contains("TLSv1.3") && printed.contains("Verification: OK"), "{printed}");
    let counted = stop(server);
    assert_eq!(counted["suites"], serde_json::json!([SUITE]));
    assert_eq!(
        (&counted["handshakes"]["full"], &counted["handshakes"]["failed"]),
        (&1.into(), &serde_json::json!({}))
    );
}

#[test]
fn openssl_server_is_loaded() {
    let folder = Folder::new("probe-load");
    let (key, chain) = (folder.join("key.pem"), folder.join("chain.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-keyout", &key, "-out", &chain])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Command::new("openssl")
        .args(["s_server", "-accept", &free.to_string(), "-cert", &chain, "-key", &key, "-www", "-quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _server = Running(server);
    let until = Instant::now() + LONG;
    while TcpStream::connect(free).is_err() {
        assert!(Instant::now() < until, "openssl s_server does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    let target = free.to_string();
    let words =
        ["load", &target, SUITE, "--rate", "20/s", "--count", "10", "--duration", "5s", "--http", "/"];
    let done = program(&[&words[..], &["--ca", &chain, "--arrivals", "deterministic"]].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let run = only(serde_json::from_slice(&done.stdout).unwrap(), "load", "LoadRun");
    assert_eq!(
        (&run["completed"], &run["planned"], &run["certificate_checked"]),
        (&10.into(), &10.into(), &"ca".into())
    );
    assert_eq!(run["negotiated"][0]["protocol"], "tls1.3");
    assert_eq!(run["first_byte_s"]["n"], 10);
}

#[test]
fn probe_loads_its_own_server_with_client_certificates() {
    let folder = Folder::new("probe-both");
    let suite = "tls1.2/ecdhe_ecdsa+p256/p256/mutual";
    let keys = folder.join("keys");
    let (server, address) = serve(&[suite, "--cache", &keys, "--server-workers", "2", "--payload", "100"]);
    let arrivals = ["--arrivals", "closed", "--clients", "2", "--count", "20", "--http", "/"];
    let done = program(&[&["load", &address, suite, "--cache", &keys][..], &arrivals].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let run = only(serde_json::from_slice(&done.stdout).unwrap(), "load", "LoadRun");
    let counted = stop(server);
    // One more connection than the run: the first one checks that the server responds.
    assert_eq!((&run["completed"], &counted["handshakes"]["full"]), (&20.into(), &21.into()));
    assert_eq!((&counted["workers"], &counted["answers"]), (&2.into(), &21.into()));
}

#[test]
fn wrong_input_is_reported_in_one_line() {
    for (words, named) in [
        (&["load"][..], "TARGET"),
        (&["load", "127.0.0.1:1", "tls9/x"][..], "tls9"),
        (&["load", "127.0.0.1:1"][..], "rate"),
        (&["load", "127.0.0.1:1", "--rate", "fast"][..], "300/s"),
        (&["load", "127.0.0.1:1", "--arrivals", "daily"][..], "poisson"),
        (&["load", "192.0.2.1:1", "--rate", "1/s"][..], "192.0.2.1"),
        (&["load", "127.0.0.1:1", "--http", "x", "--rate", "1"][..], "/index.html"),
        (&["load", "127.0.0.1:1", "--client-stack", "none", "--rate", "1"][..], "none"),
        (&["serve", SUITE][..], "--listen"),
        (&["serve", "--listen", "127.0.0.1:0"][..], "suite"),
        (&["serve", SUITE, "--listen", "nowhere"][..], "nowhere"),
        (&["serve", SUITE, "--listen", "127.0.0.1:0", "--tickets", "17"][..], "16"),
        (&["serve", SUITE, "--listen", "127.0.0.1:0", "--client-ca", "x.pem"][..], "client certificates"),
        (&["serve", SUITE, "--frobnicate"][..], "--frobnicate"),
    ] {
        let done = program(words);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(named) && said.trim_end().lines().count() == 1, "{words:?}: {said}");
        assert!(done.stdout.is_empty());
    }
}
