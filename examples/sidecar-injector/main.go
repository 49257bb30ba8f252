// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sidecar-injector:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("say what to do: serve, sidecar or manifests")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	image := flags.String("image", "wherry.example/sidecar-injector:1", "image of the injector and of the sidecar")
	namespace := flags.String("namespace", "default", "namespace of the injector's pod")
	certs := flags.String("certs", "/certs", "folder of tls.crt and tls.key")
	address := flags.String("address", "", "address to listen on (default :8443, for the sidecar :15000)")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "serve":
		mux := http.NewServeMux()
		mux.HandleFunc("POST /inject", injector{image: *image}.serve)
		mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
		return serve(ctx, &http.Server{Addr: orElse(*address, ":8443"), Handler: mux}, *certs)
	case "sidecar":
		return serve(ctx, &http.Server{Addr: orElse(*address, ":15000"), Handler: http.HandlerFunc(greet)}, "")
	case "manifests":
		return manifests(out, *namespace, *image)
	}
	return fmt.Errorf("unknown command %q: it is one of serve, sidecar, manifests", args[0])
}

func greet(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "greetings from the sidecar") }

// serve serves until ctx is done, over TLS if there is a folder of certificates.
func serve(ctx context.Context, server *http.Server, certs string) error {
	server.ReadHeaderTimeout = 10 * time.Second
	ended := make(chan error, 1)
	go func() {
		if certs == "" {
			ended <- server.ListenAndServe()
			return
		}
		ended <- server.ListenAndServeTLS(certs+"/tls.crt", certs+"/tls.key")
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return server.Shutdown(ctx)
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
