// SPDX-License-Identifier: Apache-2.0

// Package logs reads and rotates the log files the runtime writes for containers in CRI format (PL-09), one entry a
// line:
//
//	2026-11-20T10:00:00.123456789Z stdout F the text of a whole line
//	2026-11-20T10:00:00.123456789Z stderr P the first piece of a long one
//
// It reads Docker's own logs too, which a CRI runtime on top of Docker links to; Docker rotates them itself. Read
// writes a log out as kubectl logs wants it, Rotator keeps logs small.
//
// Laws: the bytes of a container's output are never changed, lines are only put together from their pieces; a reader
// that follows neither loses nor repeats a line when the log is rotated, however often, and ends only after the last
// byte of a container that is gone; anything that is not a log entry (a line torn by a crash) is left out. Following
// costs nothing while nothing is written: inotify says when to look.
package logs
