// SPDX-License-Identifier: Apache-2.0

// Command prog is the whole of the benchmarks' image: as "true" it exits at once, else it waits and exits on SIGTERM.
package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	if filepath.Base(os.Args[0]) == "true" {
		return
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	<-end
}
