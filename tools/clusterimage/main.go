// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/wherryproject/wherry/internal/cluster/image"
	"github.com/wherryproject/wherry/internal/cluster/manifest"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "clusterimage:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("clusterimage", flag.ContinueOnError)
	out := flags.String("o", "", "folder of the OCI layout to write; it must not be there")
	version := flags.String("version", "devel", "version of the programs")
	name := flags.String("name", "", "name of the image; default: the one that wherry cluster install takes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() == 0 {
		return errors.New("usage: clusterimage -o DIR [-version V] [-name NAME:TAG] GOARCH=PROGRAM…")
	}
	if *name == "" {
		*name = manifest.Image(*version)
	}
	ref, err := image.Name(*name)
	if err != nil {
		return err
	}
	roots := image.Roots()
	if roots == nil {
		fmt.Fprintln(os.Stderr,
			"clusterimage: this machine has no certificates of authorities (apt install ca-certificates): "+
				"images will not be pulled from the image")
	}
	var all []image.Program
	for _, arg := range flags.Args() {
		arch, path, is := strings.Cut(arg, "=")
		if !is {
			return fmt.Errorf("%q: want GOARCH=PROGRAM", arg)
		}
		binary, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all = append(all, image.Program{Binary: binary, Architecture: arch, Version: *version, Roots: roots})
	}
	return writeLayout(*out, ref, all...)
}
