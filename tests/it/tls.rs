//! `wss://`: whose certificate counts, and what is said of one that does not.

use std::path::Path;
use std::sync::Arc;

use crate::support::{Served, frameproof, text};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Ends TLS in front of a server that speaks plain WebSocket. Returns its port.
fn tls_in_front_of(url: &str, certificate: &rcgen::Certificate, key: &KeyPair) -> u16 {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a certificate with its key");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let behind = url.trim_start_matches("ws://").split('/').next().expect("an address").to_owned();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("not blocking");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, behind) = (acceptor.clone(), behind.clone());
                tokio::spawn(async move {
                    let Ok(mut tls) = acceptor.accept(stream).await else { return };
                    let Ok(mut plain) = TcpStream::connect(behind).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut tls, &mut plain).await;
                });
            }
        });
    });
    port
}

fn parameters(name: &str, authority: bool) -> CertificateParams {
    let mut parameters = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let role = if authority { "authority of" } else { "server" };
    parameters.distinguished_name.push(rcgen::DnType::CommonName, format!("{role} {name}"));
    if authority {
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    parameters
}

fn run(folder: &Path, port: u16, more: &[&str]) -> (Option<i32>, String) {
    let url = format!("wss://127.0.0.1:{port}/ws");
    let arguments = ["run", "minicodex", "--url", &url, "--case", "streaming/text-turn"];
    let output = frameproof(folder, &[&arguments[..], more].concat());
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn a_certificate_counts_if_somebody_trusted_has_signed_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Served::start(&["minicodex"]);
    let key = KeyPair::generate().expect("a key");
    let own = parameters("127.0.0.1", false).self_signed(&key).expect("signed");
    let foreign_key = KeyPair::generate().expect("a key");
    let foreign = parameters("example.org", false).self_signed(&foreign_key).expect("signed");
    let root = parameters("127.0.0.1", true).self_signed(&key).expect("signed");
    let leaf_key = KeyPair::generate().expect("a key");
    let issuer = Issuer::new(parameters("127.0.0.1", true), &key);
    let leaf = parameters("127.0.0.1", false).signed_by(&leaf_key, &issuer).expect("signed");
    for (name, pem) in [("own.pem", own.pem()), ("foreign.pem", foreign.pem()), ("root.pem", root.pem())] {
        std::fs::write(folder.path().join(name), pem).expect("written");
    }
    let self_signed = tls_in_front_of(&server.url, &own, &key);
    let elsewhere = tls_in_front_of(&server.url, &foreign, &foreign_key);
    let authority = tls_in_front_of(&server.url, &root, &key);
    let signed = tls_in_front_of(&server.url, &leaf, &leaf_key);
    let table: &[(u16, &[&str], i32, &str)] = &[
        (self_signed, &[], 3, "no trusted authority has signed the server's certificate"),
        (self_signed, &["--ca-file", "own.pem"], 0, "1 passed"),
        (self_signed, &["--ca-file", "foreign.pem"], 3, "no trusted authority"),
        (elsewhere, &["--ca-file", "foreign.pem"], 3, "the server's certificate is for another name"),
        (authority, &["--ca-file", "root.pem"], 3, "shows an authority's certificate as its own"),
        (signed, &["--ca-file", "root.pem"], 0, "1 passed"),
        (signed, &[], 3, "--ca-file FILE"),
        (signed, &["--ca-file", "absent.pem"], 2, "absent.pem cannot be read"),
    ];
    for (port, more, code, expected) in table {
        let (status, shown) = run(folder.path(), *port, more);
        assert_eq!(status, Some(*code), "{more:?} {expected}\n{shown}");
        assert!(shown.contains(expected), "{more:?}: {expected} is not in\n{shown}");
    }
    // The doctor trusts whom a run trusts.
    let url = format!("wss://127.0.0.1:{signed}/ws");
    for (more, code, part) in [
        (&["--ca-file", "root.pem"][..], 0, "Nothing is missing"),
        (&[], 1, "no trusted authority has signed"),
        (&["--ca-file", "absent.pem"], 2, "absent.pem cannot be read"),
    ] {
        let output = frameproof(folder.path(), &[&["doctor", "minicodex", "--url", &url], more].concat());
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{shown}");
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    // As the configuration's key; the path is relative to the file.
    std::fs::write(folder.path().join("frameproof.toml"), "ca-file = 'root.pem'\n").expect("written");
    let (status, shown) = run(folder.path(), signed, &[]);
    assert_eq!(status, Some(0), "{shown}");
}

#[test]
fn a_server_without_tls_is_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Served::start(&["minicodex"]);
    let port = server.url.rsplit(':').next().and_then(|rest| rest.split('/').next()).expect("a port");
    let (status, shown) = run(folder.path(), port.parse().expect("a port"), &[]);
    assert_eq!(status, Some(3), "{shown}");
    assert!(shown.contains("is it a ws:// server?"), "{shown}");
    // The system takes its connections; nobody answers on them.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = mute.local_addr().expect("an address").port();
    let (status, shown) = run(folder.path(), port, &["--timeout-scale", "0.2"]);
    assert_eq!(status, Some(3), "{shown}");
    for part in ["has not ended the TLS handshake within 1s", "answers no TLS: is it a `ws://` server"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
}

/// Answers every HTTP request with a session's id. Returns its port.
fn sessions() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        use std::io::{BufRead, BufReader, Write};
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut lines = BufReader::new(&stream).lines();
                // The set-up call has no body.
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let body = r#"{"data":{"id":"s-1"}}"#;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                let answered = write!(&stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                // Whoever closes before everything is read cuts the answer off.
                answered.and_then(|()| stream.shutdown(std::net::Shutdown::Write)).expect("answered");
                let _ = std::io::copy(&mut &stream, &mut std::io::sink());
            });
        }
    });
    port
}

#[test]
fn set_up_calls_and_readiness_trust_whom_the_run_trusts() {
    let folder = tempfile::tempdir().expect("a folder");
    let (key, leaf_key) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
    let root = parameters("127.0.0.1", true).self_signed(&key).expect("signed");
    let leaf = parameters("127.0.0.1", false)
        .signed_by(&leaf_key, &Issuer::new(parameters("127.0.0.1", true), &key))
        .expect("signed");
    std::fs::write(folder.path().join("root.pem"), root.pem()).expect("written");
    let server = Served::start(&["codey"]);
    let wss = tls_in_front_of(&server.url, &leaf, &leaf_key);
    let https = tls_in_front_of(&format!("ws://127.0.0.1:{}/", sessions()), &leaf, &leaf_key);
    // The server that is launched tells where it is; that is behind TLS already.
    let target = |name: &str, more: &str| {
        format!(
            "[target.{name}]\nprotocol = 'codey'\nurl = 'wss://127.0.0.1:{{{{port}}}}/?id={{{{id}}}}'\nstart-timeout = '3s'\n\
             [[target.{name}.process]]\nname = 'teller'\ncommand = ['sh', '-c', 'echo port {wss} id s-0; exec sleep 600']\n\
             ready = {{ log = 'port {{{{port}}}} id {{{{id}}}}' }}\n\
             [[target.{name}.process]]\nname = 'last'\ncommand = ['sleep', '600']\n{more}"
        )
    };
    let config = [
        target("frame", "ready = { first-frame = true }\n"),
        target("get", &format!("ready = {{ http = 'https://127.0.0.1:{https}/health' }}\n")),
        target(
            "call",
            &format!(
                "ready = {{ tcp = '127.0.0.1:{https}' }}\n\
                 [[target.call.setup]]\nurl = 'https://127.0.0.1:{https}/sessions'\nsave = {{ id = '/data/id' }}\n"
            ),
        ),
    ];
    std::fs::write(folder.path().join("frameproof.toml"), config.concat()).expect("written");
    for (target, refusal) in [
        ("frame", "its URL yields no first frame"),
        ("get", "is not answered with a status from 200 to 399"),
        ("call", "no trusted authority has signed"),
    ] {
        let run = ["run", "--target", target, "--case", "ping/*"];
        let trusting = frameproof(folder.path(), &[&run[..], &["--ca-file", "root.pem"]].concat());
        let shown = text(&trusting.stdout) + &text(&trusting.stderr);
        assert_eq!(trusting.status.code(), Some(0), "{target}: {shown}");
        let plain = frameproof(folder.path(), &run);
        let shown = text(&plain.stdout) + &text(&plain.stderr);
        assert_eq!(plain.status.code(), Some(3), "{target}: {shown}");
        assert!(shown.contains(refusal), "{target}: {refusal} is not in {shown}");
    }
}
