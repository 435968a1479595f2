//! A hundred thousand clients that begin a handshake and never continue it.

#![allow(clippy::unwrap_used)]

mod support;

use shakedown_wtls::provider::openssl::OpenSsl;
use shakedown_wtls::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use support::*;

/// Counts the bytes that are allocated in this process.
struct Counting;

static ALLOCATED_BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED_BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const FLOOD: u32 = 100_000;

/// A ClientHello that differs from others only in its random.
fn hello(config: &Arc<ClientConfig<OpenSsl>>, seed: u64, now: Duration) -> Vec<u8> {
    let mut environment = Environment::new(seed);
    let mut client = Client::new(Arc::clone(config), None, &mut environment.cx(now));
    client.poll_transmit().unwrap()
}

// The only test of its process, so that the counts contain no other allocations.
#[test]
fn flood_of_hellos_uses_limited_memory_and_blocks_no_client() {
    let kinds = [Kind::Ec(Curve::Secp160r1)];
    let (client, server) = certified_pair(&kinds, ClientAuthentication::Required, true, false);
    let (client, server) = (Arc::new(client), Arc::new(server));
    let limits = Limits { half_open: 1_000, ..Limits::default() };
    let mut listener = Listener::<u32, OpenSsl>::new(Arc::clone(&server), limits);
    let mut environment = Environment::new(1);
    let mut now = Duration::from_secs(10);

    // A client that was there before the flood stays connected throughout.
    let regular = u32::MAX;
    let mut early = Pair::new(&client, &server, None, 1);
    converse(&mut listener, &mut environment, regular, &mut early, now);
    assert!(early.client.is_open());

    let mut flood =
        (0..FLOOD).map(|address| (address, hello(&client, u64::from(address), Duration::from_secs(10))));
    let mut genuine = Pair::new(&client, &server, None, 2);
    let before = ALLOCATED_BYTES.load(Ordering::Relaxed);
    let mut most_held = 0;
    let mut half = flood.by_ref().take(FLOOD as usize / 2).peekable();
    while half.peek().is_some() {
        for (address, datagram) in half.by_ref().take(1_000) {
            now += Duration::from_micros(100);
            listener.handle_input(&mut environment.cx(now), address, &datagram);
            while listener.poll_transmit().is_some() {}
        }
        let held = ALLOCATED_BYTES.load(Ordering::Relaxed).saturating_sub(before);
        most_held = held.max(most_held);
        environment.log.0.clear();
        assert!(listener.half_open() <= limits.half_open);
        assert!(listener.half_open_bytes() <= listener.half_open_bound_bytes());
    }
    assert!(most_held <= listener.half_open_bound_bytes(), "{most_held} bytes held");
    println!(
        "{most_held} bytes held for {} half-open peers, {} counted, the bound is {}",
        listener.half_open(),
        listener.half_open_bytes(),
        listener.half_open_bound_bytes()
    );

    // A genuine client during the flood: 900 other datagrams arrive between each of its datagrams.
    let genuine_address = u32::MAX - 1;
    for _ in 0..10 {
        converse(&mut listener, &mut environment, genuine_address, &mut genuine, now);
        for (address, datagram) in flood.by_ref().take(900) {
            listener.handle_input(&mut environment.cx(now), address, &datagram);
            // Responses to the flood are dropped; those for the genuine client are delivered.
            while let Some((to, datagram)) = listener.poll_transmit() {
                if to == genuine_address {
                    genuine.deliver_to_client(&datagram);
                }
            }
        }
    }
    assert!(genuine.client.is_open());

    for (address, datagram) in flood {
        listener.handle_input(&mut environment.cx(now), address, &datagram);
        while listener.poll_transmit().is_some() {}
    }
    assert_eq!(listener.established(), 2);
    early.client_write(b"still here");
    converse(&mut listener, &mut environment, regular, &mut early, now);
    let mut events = std::iter::from_fn(|| listener.poll_event());
    let arrived = Event::Data(b"still here".to_vec());
    assert!(events.any(|found| found.address == regular && found.event == arrived));

    // After the flood, the handshakes time out.
    now += server.handshake_timeout;
    assert!(listener.poll_timeout().unwrap() <= now);
    listener.handle_timeout(&mut environment.cx(now));
    assert_eq!(listener.half_open(), 0);
    assert_eq!(listener.established(), 2);
    now += limits.idle;
    listener.handle_timeout(&mut environment.cx(now));
    assert_eq!(listener.established(), 0);
    assert_eq!(listener.poll_timeout(), None);
}

/// Delivers at most two datagrams of a client to the listener, and the responses to each of them.
fn converse(
    listener: &mut Listener<u32, OpenSsl>,
    environment: &mut Environment,
    address: u32,
    pair: &mut Pair,
    now: Duration,
) {
    if let Some(datagram) = pair.client.poll_transmit() {
        listener.handle_input(&mut environment.cx(now), address, &datagram);
    }
    while let Some((to, datagram)) = listener.poll_transmit() {
        if to == address {
            pair.deliver_to_client(&datagram);
        }
    }
    if pair.client.poll_timeout().is_none() {
        return;
    }
    if let Some(datagram) = pair.client.poll_transmit() {
        listener.handle_input(&mut environment.cx(now), address, &datagram);
        while let Some((to, datagram)) = listener.poll_transmit() {
            if to == address {
                pair.deliver_to_client(&datagram);
            }
        }
    }
}
