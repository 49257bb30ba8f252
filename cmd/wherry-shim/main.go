// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wherryproject/wherry/internal/shim"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "wherry-shim:", err)
		os.Exit(1)
	}
}

// run reads the command line that containerd has for shims.
func run() error {
	namespace := flag.String("namespace", "", "containerd's namespace")
	id := flag.String("id", "", "the task")
	info := flag.Bool("info", false, "tell what the runtime can do")
	// containerd says these, and nobody needs them here.
	flag.String("address", "", "")
	flag.String("publish-binary", "", "")
	flag.String("bundle", "", "")
	flag.Bool("debug", false, "")
	flag.Parse()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if *info {
		return shim.Info(context.Background(), filepath.Join(filepath.Dir(self), "runc"), os.Stdout)
	}
	if flag.Arg(0) == "delete" {
		answer, err := shim.Clean(context.Background(), *id)
		if answer == nil {
			return err
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "wherry-shim:", err) // containerd logs it as a warning
		}
		_, err = os.Stdout.Write(answer)
		return err
	}
	return shim.Serve(shim.Options{
		Namespace: *namespace, ID: *id, Events: os.Getenv("TTRPC_ADDRESS"),
		Front: filepath.Join(filepath.Dir(self), shim.Front),
	})
}
