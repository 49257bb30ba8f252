// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/wherryproject/wherry/internal/cluster/agent/identity"
	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/streams"
)

// Word is the argument that makes the program an agent.
const Word = "cluster-agent"

// options are an agent's settings.
type options struct {
	node, listen, socket string
	cert, key, ca        string // files, in place of what the cluster signs
	kit                  string // the folder of a kit; empty: there is none
	place                Place
}

// parse reads the options. (Pure.)
func parse(args []string, getenv func(string) string, errs io.Writer) (o options, err error) {
	fl := flag.NewFlagSet("wherry "+Word, flag.ContinueOnError)
	fl.SetOutput(errs)
	fl.StringVar(&o.node, "node", getenv("NODE_NAME"), "the node's name; default: NODE_NAME")
	fl.StringVar(&o.listen, "listen", ":"+strconv.Itoa(wire.AgentPort), "where to listen")
	fl.StringVar(&o.socket, "cri-socket", "", "the socket of the node's container runtime; default: its usual places")
	fl.StringVar(&o.cert, "cert", "", "file of the agent's certificate; default: the cluster is asked for one")
	fl.StringVar(&o.key, "key", "", "file of its key")
	fl.StringVar(&o.ca, "ca", "", "file of the authority of the API's certificate")
	fl.StringVar(&o.kit, "kit", "", "folder in which the tools of sessions are had ready; default: each unpacks them")
	fl.BoolVar(&o.place.Here, "in-place", false,
		"run sessions in the agent's own namespaces; for an agent that is not in a container")
	if err := fl.Parse(args); err != nil {
		return o, err
	}
	given := 0
	for _, file := range []string{o.cert, o.key, o.ca} {
		if file != "" {
			given++
		}
	}
	switch {
	case fl.NArg() > 0:
		return o, fmt.Errorf("%q is one argument too many", fl.Arg(0))
	case given != 0 && given != 3:
		return o, errors.New("--cert, --key and --ca belong together: give all of them, or none")
	case o.node == "":
		return o, errors.New("NODE_NAME (or --node) is needed: the name of the node that this agent is on")
	}
	return o, nil
}

// Main is an agent's process. It returns the exit code.
func Main(args []string, errs io.Writer) int {
	o, err := parse(args, os.Getenv, errs)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(errs, "error:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	say := func(format string, args ...any) { fmt.Fprintf(errs, "wherry agent: "+format+"\n", args...) }
	if err := run(ctx, o, say); err != nil {
		fmt.Fprintln(errs, "error:", err)
		return 1
	}
	return 0
}

// run serves until the end of ctx.
func run(ctx context.Context, o options, say func(string, ...any)) error {
	if err := o.prepare(say); err != nil {
		return err
	}
	credentials, first, err := o.credentials(ctx, say)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, o.listen, first)
	if err != nil || listener == nil {
		return err
	}
	start := func(ask talk.Ask, s Streams) (*Child, error) { return o.place.Start("/proc/self/exe", ask, s) }
	server := NewServer(start, Records{o.place}, o.socket).HTTP()
	server.ErrorLog = log.New(sayer(say), "", 0)
	ended := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer ended()
	say("node %s, listening at %s", o.node, listener.Addr())
	if err := server.Serve(tls.NewListener(streams.Gathering(listener), TLS(credentials))); !errors.Is(err,
		http.ErrServerClosed) {
		return err
	}
	return nil
}

// listen listens once there is a certificate, for an agent that listens is taken for one that serves. It is nil if ctx
// ends before.
func listen(ctx context.Context, address string, first <-chan struct{}) (net.Listener, error) {
	select {
	case <-first:
		return net.Listen("tcp", address)
	case <-ctx.Done():
		return nil, nil
	}
}

// sayer takes the lines of a log.
type sayer func(string, ...any)

// Write implements io.Writer.
func (s sayer) Write(line []byte) (int, error) {
	// A connection that is closed before it has sent anything is that of a probe.
	if text := strings.TrimSpace(string(line)); !strings.HasSuffix(text, ": EOF") {
		s("%s", text)
	}
	return len(line), nil
}

// credentials are those of the files, or what the cluster signs; first is closed once there are some.
func (o options) credentials(ctx context.Context, say func(string, ...any)) (now func() *Credentials,
	first <-chan struct{}, err error) {
	if o.cert != "" {
		there := make(chan struct{})
		close(there)
		c, err := fromFiles(o.cert, o.key, o.ca)
		return func() *Credentials { return c }, there, err
	}
	cluster, err := identity.InCluster(os.Getenv)
	if err != nil {
		return nil, nil, err
	}
	keeper := identity.New(cluster, o.node, say)
	go keeper.Run(ctx)
	return func() *Credentials {
		now := keeper.Now()
		if now == nil {
			return nil
		}
		return &Credentials{Certificate: &now.Certificate, Clients: now.Roots, Stranger: keeper.Hurry}
	}, keeper.First(), nil
}

func fromFiles(cert, key, ca string) (*Credentials, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: there is no certificate in it", ca)
	}
	return &Credentials{Certificate: &pair, Clients: pool}, nil
}
