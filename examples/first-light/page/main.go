// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
)

func main() {
	text := fmt.Sprintf("First light of pod %s on node %s.\n", os.Getenv("POD"), os.Getenv("NODE"))
	if err := os.WriteFile("/site/index.html", []byte(text), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print("wrote the page: ", text)
}
