// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "notes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: notes web|api|proxy [flags]")
	}
	flags := flag.NewFlagSet("notes "+args[0], flag.ContinueOnError)
	listen := flags.String("listen", ":8080", "address to serve")
	api := flags.String("api", "http://api:8080", "web: where the API is")
	to := flags.String("to", "db:5432", "proxy: where connections go")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "web":
		return serve(ctx, *listen, newWeb(*api))
	case "api":
		h, err := newAPI(os.Getenv("DATABASE_URL"))
		if err != nil {
			return err
		}
		defer h.db.Close()
		return serve(ctx, *listen, h.handler())
	case "proxy":
		return proxy(ctx, *listen, *to)
	}
	return fmt.Errorf("there is no role %q: web, api, proxy", args[0])
}

// lastRequests is how long requests have when the pod ends.
const lastRequests = 5 * time.Second

// serve serves until ctx ends, and the requests that have begun to their end.
func serve(ctx context.Context, address string, h http.Handler) error {
	s := &http.Server{Addr: address, Handler: h, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- s.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		ending, cancel := context.WithTimeout(context.Background(), lastRequests)
		defer cancel()
		return s.Shutdown(ending)
	}
}
