// SPDX-License-Identifier: Apache-2.0

// Command prog is the whole of the benchmarks' image. By the name it is called by it exits at once (true), ends the
// container's first process (end), tells by its exit code whether a file is there (there FILE), prints so many bytes
// when it is told to (print N), takes connections (serve ADDRESS), makes many (connect ADDRESS N WORKERS), asks for a
// name many times (ask NAME N WORKERS), waits until somebody answers at an address (until ADDRESS), or else waits and
// exits on SIGTERM.
package main
