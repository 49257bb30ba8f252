// SPDX-License-Identifier: Apache-2.0

// Package trail reads the audit log back for a person.
//
// Files lists a log with the files it was rotated into, oldest first; Read goes through them event by event, Follow through what
// comes; a Filter picks events; Say words one as an Entry, and Merge makes one Entry of a request's begin and end.
//
// Its law: a log is read as a stream, whatever its size. A line that cannot be read, as after a power cut, is counted and left
// out. What clients wrote (names, commands, addresses) is shown with control characters escaped: a terminal obeys those.
package trail
