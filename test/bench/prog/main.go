// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "true":
		return
	case "end":
		if syscall.Kill(1, syscall.SIGTERM) != nil {
			os.Exit(1)
		}
		return
	case "there":
		if _, err := os.Stat(os.Args[1]); err != nil {
			os.Exit(1)
		}
		return
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	<-end
}
