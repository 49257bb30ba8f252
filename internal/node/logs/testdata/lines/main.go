// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	out := bufio.NewWriter(os.Stdout)
	for n := 0; ; {
		for range 100 {
			fmt.Fprintf(out, "line %d\n", n)
			n++
		}
		out.Flush()
		select {
		case <-stop:
			fmt.Printf("end after %d", n) // no newline
			return
		case <-time.After(time.Millisecond):
		}
	}
}
