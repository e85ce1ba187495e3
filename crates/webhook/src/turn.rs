//! Takes one review at a time, and lets addresses take turns.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// What waits, by address: the addresses come round in turn, and what waits at one address
/// comes in its order. An address with many waiting delays the others no more than one with a
/// single one does.
#[derive(Debug)]
pub(crate) struct Turns<T>(VecDeque<(IpAddr, VecDeque<T>)>);

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Turns<T> {
    /// Adds one behind the others of its address; the first of an address is added behind the
    /// other addresses.
    pub(crate) fn push(&mut self, peer: IpAddr, waiting: T) {
        match self.0.iter_mut().find(|(of, _)| *of == peer) {
            Some((_, queue)) => queue.push_back(waiting),
            None => self.0.push_back((peer, VecDeque::from([waiting]))),
        }
    }

    /// Takes the first of the next address, which is then the last one.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let (peer, mut queue) = self.0.pop_front()?;
        let next = queue.pop_front();
        if !queue.is_empty() {
            self.0.push_back((peer, queue));
        }
        next
    }
}

/// Lets one through at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lane(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    is_taken: bool,
    waiting: Turns<oneshot::Sender<Turn>>,
}

/// The one that is let through, until this is dropped.
#[derive(Debug)]
pub(crate) struct Turn(Lane);

impl Lane {
    /// Waits for the turn of this address.
    pub(crate) async fn turn(&self, peer: IpAddr) -> Turn {
        loop {
            let waiting = {
                let mut state = self.state();
                if !state.is_taken {
                    state.is_taken = true;
                    return Turn(self.clone());
                }
                let (sender, waiting) = oneshot::channel();
                state.waiting.push(peer, sender);
                waiting
            };
            if let Ok(turn) = waiting.await {
                return turn;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next one that still waits. Without one, the lane is free.
    fn next(&self) -> Option<oneshot::Sender<Turn>> {
        let mut state = self.state();
        while let Some(next) = state.waiting.pop() {
            if !next.is_closed() {
                return Some(next);
            }
        }
        state.is_taken = false;
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(next) = self.0.next() {
            // One that has just gone gives the turn back, which passes it on.
            let _ = next.send(Turn(self.0.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn addresses_take_turns_however_many_wait_at_one_of_them() {
        let mut turns = Turns::default();
        for number in 0..16 {
            turns.push(address(1), format!("hostile {number}"));
        }
        turns.push(address(2), "first honest".to_owned());
        assert_eq!(turns.pop().unwrap(), "hostile 0");
        assert_eq!(turns.pop().unwrap(), "first honest");
        assert_eq!(turns.pop().unwrap(), "hostile 1");
        turns.push(address(2), "second honest".to_owned());
        assert_eq!(turns.pop().unwrap(), "hostile 2");
        assert_eq!(turns.pop().unwrap(), "second honest");
        let rest: Vec<String> = std::iter::from_fn(|| turns.pop()).collect();
        let expected: Vec<String> = (3..16).map(|it| format!("hostile {it}")).collect();
        assert_eq!(rest, expected);
    }

    #[test]
    fn every_address_has_come_before_one_comes_again() {
        let mut turns = Turns::default();
        for round in 0..3 {
            for peer in 0..5_u8 {
                turns.push(address(peer), (peer, round));
            }
        }
        for round in 0..3 {
            for peer in 0..5 {
                assert_eq!(turns.pop(), Some((peer, round)));
            }
        }
        assert_eq!(turns.pop(), None);
    }

    #[tokio::test]
    async fn a_turn_is_passed_on_and_one_that_waits_no_longer_is_left_out() {
        let lane = Lane::default();
        let first = lane.turn(address(1)).await;
        let mut gone = Box::pin(lane.turn(address(2)));
        let mut second = Box::pin(lane.turn(address(3)));
        assert!(futures::poll!(gone.as_mut()).is_pending());
        assert!(futures::poll!(second.as_mut()).is_pending());
        drop(gone);
        drop(first);
        let second = second.await;
        let mut third = Box::pin(lane.turn(address(1)));
        assert!(futures::poll!(third.as_mut()).is_pending());
        drop(second);
        drop(third.await);
        assert!(!lane.state().is_taken);
    }

    #[tokio::test]
    async fn a_turn_that_arrives_too_late_is_passed_on() {
        let lane = Lane::default();
        let first = lane.turn(address(1)).await;
        let mut late = Box::pin(lane.turn(address(2)));
        let mut last = Box::pin(lane.turn(address(3)));
        assert!(futures::poll!(late.as_mut()).is_pending());
        assert!(futures::poll!(last.as_mut()).is_pending());
        drop(first);
        // It has the turn, but is never polled again.
        drop(late);
        drop(last.await);
        assert!(!lane.state().is_taken);
    }
}
