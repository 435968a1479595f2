//! Endpoints that wrap others.

use crate::endpoint::{Endpoint, Event, ExportError, Session, Side, Time, Transport, WriteError};

/// An endpoint that wraps another one. It implements [`Endpoint`]; only the methods below differ from the inner one.
pub trait Wrapper: Send {
    type Inner: Endpoint + ?Sized;

    fn inner(&self) -> &Self::Inner;

    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// Runs one call in which the inner endpoint may work.
    #[inline]
    fn around<T>(&mut self, call: impl FnOnce(&mut Self::Inner) -> T) -> T {
        call(self.inner_mut())
    }

    /// Takes the next event, as [`Endpoint::poll_event`] does.
    #[inline]
    fn take_event(&mut self) -> Option<Event> {
        self.around(Endpoint::poll_event)
    }

    /// A unit has arrived; the inner endpoint processes it next.
    #[inline]
    fn unit_arrives(&mut self, unit: &[u8]) {
        let _ = unit;
    }

    #[inline]
    fn unit_leaves(&mut self, unit: &[u8]) {
        let _ = unit;
    }
}

impl<E: Endpoint + ?Sized> Wrapper for Box<E> {
    type Inner = E;

    #[inline]
    fn inner(&self) -> &E {
        self
    }

    #[inline]
    fn inner_mut(&mut self) -> &mut E {
        self
    }
}

impl<W: Wrapper> Endpoint for W {
    fn side(&self) -> Side {
        self.inner().side()
    }

    fn transport(&self) -> Transport {
        self.inner().transport()
    }

    fn handle_input(&mut self, now: Time, bytes: &[u8]) {
        self.unit_arrives(bytes);
        self.around(|inner| inner.handle_input(now, bytes));
    }

    fn handle_timeout(&mut self, now: Time) {
        self.around(|inner| inner.handle_timeout(now));
    }

    fn handle_close(&mut self, now: Time) {
        self.around(|inner| inner.handle_close(now));
    }

    fn write(&mut self, now: Time, data: &[u8]) -> Result<(), WriteError> {
        self.around(|inner| inner.write(now, data))
    }

    fn close(&mut self, now: Time) {
        self.around(|inner| inner.close(now));
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool {
        let start = buffer.len();
        let sent = self.around(|inner| inner.poll_transmit(now, buffer));
        if sent {
            self.unit_leaves(&buffer[start..]);
        }
        sent
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner().poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.take_event()
    }

    fn state(&self) -> String {
        self.inner().state()
    }

    fn session(&self) -> Option<Session> {
        self.inner().session()
    }

    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        self.inner().peer_certificates()
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &str,
        context: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        self.inner().export_keying_material(output, label, context)
    }
}
