// SPDX-License-Identifier: Apache-2.0

// Package logind holds up the machine's going down, by systemd-logind's inhibitor locks, until pods have ended (PL-32).
//
// [Watch] takes a lock, raises logind's limit on how long a lock may hold things up where it is too low, and reports
// each shutdown; the lock is given back when the listener has returned.
// [Forget] removes that limit again, for a server that is removed.
//
// Its law: it decides nothing about pods. Where there is no logind it says so and does nothing.
package logind
