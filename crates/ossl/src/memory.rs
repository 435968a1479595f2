//! Counting what is held: every byte that OpenSSL or this program allocates for an account.
//!
//! OpenSSL takes allocation functions only before its first allocation, so [`install`] is called when the
//! program starts. From then on its allocations pass through here, as do Rust's through [`Counting`];
//! while nobody counts, that is one look at a thread-local flag. While somebody does ([`count`]), each
//! block is entered with its requested size under the account that is current, and crossed out when it
//! is freed, whoever frees it.

use libc::{c_char, c_int, c_void, size_t};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whose bytes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// Not counted.
    Nobody,
    /// The client's connection.
    Client,
    /// The server's connection.
    Server,
    /// The client's context: settings, certificates, trusted roots.
    ClientContext,
    /// The server's context.
    ServerContext,
}

const ACCOUNTS: usize = 5;

/// Bytes of one account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Held now.
    pub bytes: usize,
    /// The most that was held at once.
    pub peak_bytes: usize,
}

#[derive(Default)]
struct Book {
    /// Live blocks with their size and account.
    blocks: HashMap<usize, (usize, Account)>,
    held: [Held; ACCOUNTS],
}

thread_local! {
    static COUNTING: Cell<bool> = const { Cell::new(false) };
    static CURRENT: Cell<Account> = const { Cell::new(Account::Nobody) };
    // Never dropped: a destructor would have to be registered from within an allocation.
    static BOOK: RefCell<Option<ManuallyDrop<Book>>> = const { RefCell::new(None) };
}

static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Counts what `work` allocates, on this thread. [`held`] tells the figures, while `work` runs.
pub fn count<T>(work: impl FnOnce() -> T) -> T {
    BOOK.set(Some(ManuallyDrop::new(Book::default())));
    COUNTING.set(true);
    let result = work();
    COUNTING.set(false);
    if let Some(book) = BOOK.take() {
        drop(ManuallyDrop::into_inner(book));
    }
    result
}

/// Runs `work` on an account; nested calls change the account for their time.
pub fn on<T>(account: Account, work: impl FnOnce() -> T) -> T {
    let before = CURRENT.replace(account);
    let result = work();
    CURRENT.set(before);
    result
}

/// The figures of an account so far. All zero while nobody counts.
#[must_use]
pub fn held(account: Account) -> Held {
    BOOK.with_borrow(|book| book.as_ref().map_or_else(Held::default, |book| book.held[account as usize]))
}

fn enter(block: *mut c_void, size: usize) {
    let account = CURRENT.get();
    if account == Account::Nobody || block.is_null() {
        return;
    }
    with_book(|book| {
        book.blocks.insert(block as usize, (size, account));
        let held = &mut book.held[account as usize];
        held.bytes += size;
        held.peak_bytes = held.peak_bytes.max(held.bytes);
    });
}

/// Crosses a block out; its account, where it had one.
fn leave(block: *mut c_void) -> Option<Account> {
    with_book(|book| {
        let (size, account) = book.blocks.remove(&(block as usize))?;
        book.held[account as usize].bytes -= size;
        Some(account)
    })
    .flatten()
}

/// Works on the book; what that allocates itself is not entered.
fn with_book<T>(work: impl FnOnce(&mut Book) -> T) -> Option<T> {
    if !COUNTING.replace(false) {
        return None;
    }
    let result = BOOK.with_borrow_mut(|book| book.as_mut().map(|book| work(book)));
    COUNTING.set(true);
    result
}

#[inline]
fn is_counting() -> bool {
    COUNTING.get()
}

unsafe extern "C" {
    fn CRYPTO_set_mem_functions(
        malloc: unsafe extern "C" fn(size_t, *const c_char, c_int) -> *mut c_void,
        realloc: unsafe extern "C" fn(*mut c_void, size_t, *const c_char, c_int) -> *mut c_void,
        free: unsafe extern "C" fn(*mut c_void, *const c_char, c_int),
    ) -> c_int;
}

/// Routes OpenSSL's allocations through here. True where that is so, now or since earlier.
///
/// OpenSSL refuses once it has allocated anything; then its memory can't be counted in this process.
pub fn install() -> bool {
    if INSTALLED.load(Ordering::Acquire) {
        return true;
    }
    // SAFETY: the functions keep the contract of malloc, realloc and free.
    let taken = unsafe { CRYPTO_set_mem_functions(malloc, realloc, free) } == 1;
    if taken {
        INSTALLED.store(true, Ordering::Release);
    }
    taken
}

/// Lets go of what OpenSSL's list of this thread's errors keeps: where in its source each was raised.
///
/// Decrypting with RSA always leaves an entry there, marked as void. It is the thread's and no connection's.
pub fn clear_errors() {
    // SAFETY: may be called at any time.
    unsafe { openssl_sys::ERR_clear_error() };
}

unsafe extern "C" fn malloc(size: size_t, _: *const c_char, _: c_int) -> *mut c_void {
    // SAFETY: any size may be asked for.
    let block = unsafe { libc::malloc(size) };
    if is_counting() {
        enter(block, size);
    }
    block
}

unsafe extern "C" fn realloc(block: *mut c_void, size: size_t, _: *const c_char, _: c_int) -> *mut c_void {
    let known = if is_counting() { leave(block) } else { None };
    // SAFETY: the block is null or came from these functions.
    let moved = unsafe { libc::realloc(block, size) };
    if is_counting() {
        // A block stays on the account it was first entered under.
        on(known.unwrap_or_else(|| CURRENT.get()), || enter(moved, size));
    }
    moved
}

unsafe extern "C" fn free(block: *mut c_void, _: *const c_char, _: c_int) {
    if is_counting() {
        leave(block);
    }
    // SAFETY: the block is null or came from these functions.
    unsafe { libc::free(block) };
}

/// Rust's allocator, through the same book. A program that wants its own memory counted makes this its
/// `#[global_allocator]`.
pub struct Counting;

// SAFETY: every call is handed to the system's allocator unchanged; the book only notes it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: handed on.
        let block = unsafe { System.alloc(layout) };
        if is_counting() {
            enter(block.cast(), layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_counting() {
            leave(block.cast());
        }
        // SAFETY: handed on.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let known = if is_counting() { leave(block.cast()) } else { None };
        // SAFETY: handed on.
        let moved = unsafe { System.realloc(block, layout, size) };
        if is_counting() {
            on(known.unwrap_or_else(|| CURRENT.get()), || enter(moved.cast(), size));
        }
        moved
    }
}
