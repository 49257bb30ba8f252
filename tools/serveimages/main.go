// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	if err := serve(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "serveimages:", err)
		os.Exit(1)
	}
}

func serve(archives []string, until io.Reader, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	address := listener.Addr().String()
	ended := make(chan error, 1)
	go func() {
		ended <- http.Serve(listener, registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	}()
	for _, archive := range archives {
		if err := push(address, archive); err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
	}
	fmt.Fprintln(out, address)
	go func() {
		_, err := io.Copy(io.Discard, until)
		ended <- err
	}()
	return <-ended
}

// push puts an archive's image into the registry at an address.
func push(address, archive string) error {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil {
		return err
	}
	if len(manifest) != 1 || len(manifest[0].RepoTags) != 1 {
		return errors.New("it does not have one image with one name")
	}
	given, err := name.NewTag(manifest[0].RepoTags[0])
	if err != nil {
		return err
	}
	image, err := tarball.ImageFromPath(archive, &given)
	if err != nil {
		return err
	}
	to, err := name.NewTag(address+"/"+given.RepositoryStr()+":"+given.TagStr(), name.Insecure)
	if err != nil {
		return err
	}
	return remote.Write(to, image)
}
