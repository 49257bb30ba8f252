// SPDX-License-Identifier: Apache-2.0

// Package trail reads the audit log back for people.
//
// Files lists a log with its rotated files, oldest first; Read goes through them event by event, Follow through new
// events; a Filter selects events; Say words one as an Entry, and Merge combines a request's start and end into one
// Entry.
//
// Its law: a log is read as a stream, whatever its size. A line that cannot be read, for example after a power cut, is
// counted and skipped. What clients wrote (names, commands, addresses) is shown with control characters escaped: a
// terminal obeys those.
package trail
