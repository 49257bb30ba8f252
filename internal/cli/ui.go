// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/release"
	"github.com/wherryproject/wherry/internal/ui"
	"github.com/wherryproject/wherry/internal/ui/peer"
)

// uiFlags are the flags of `wherry ui`.
type uiFlags struct {
	reach.Flags
	namespace string
	address   string
	port      int
	noOpen    bool
}

func newUI(t Terminal) *cobra.Command {
	f := &uiFlags{}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Look at pods in a browser",
		Long: `Serve a web page on this machine that shows pods, their timelines, logs and files.

It prints a link, and on a desktop opens it. The link signs in once, within five minutes; press Enter for another one. The page has the
rights of the kubeconfig, and everything it shows comes from that server. It is served on loopback only, without TLS, until Ctrl-C; to
use it from another machine, forward the port (see the examples), or have the server serve it: wherry server --ui.`,
		Example: `  wherry ui
  wherry ui --kubeconfig ~/.kube/config --context staging -n shop

  # on a remote machine: there and here, then open the link here
  wherry ui --port 8480 --no-open
  ssh -L 8480:127.0.0.1:8480 user@far-away`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), t) },
	}
	f.AddServerTo(cmd)
	fl := cmd.Flags()
	fl.StringVarP(&f.namespace, "namespace", "n", "", "namespace that the page shows first; default: all")
	fl.StringVar(&f.address, "address", "127.0.0.1", "loopback address to listen on")
	fl.IntVar(&f.port, "port", 0, "port to listen on; 0 for any free one")
	fl.BoolVar(&f.noOpen, "no-open", false, "do not open the link in a browser")
	_ = cmd.RegisterFlagCompletionFunc("address", // fails only for a flag that is not there
		cobra.FixedCompletions([]string{"127.0.0.1", "::1"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// check refuses addresses at which others could come in: the page has the user's rights, and no TLS.
func (f *uiFlags) check() error {
	ip, err := netip.ParseAddr(f.address)
	switch {
	case err != nil || ip.Zone() != "" || !ip.Unmap().IsLoopback():
		return cmdline.ExitWith(exitUsage,
			fmt.Errorf("--address %s: use a loopback address, such as 127.0.0.1 or ::1; "+
				"for other machines, forward the port by ssh -L, or have the server serve the page: wherry server --ui",
				f.address))
	case f.port < 0 || f.port > 65535:
		return cmdline.ExitWith(exitUsage, fmt.Errorf("--port %d: use 1 to 65535, or 0 for any free one", f.port))
	}
	return nil
}

func (f *uiFlags) run(ctx context.Context, t Terminal) error {
	if err := f.check(); err != nil {
		return err
	}
	client, err := f.Connect()
	if err != nil {
		return err
	}
	api, host, err := apiOf(client)
	if err != nil {
		return err
	}
	l, err := listenAt(f.address, f.port)
	if err != nil {
		return err
	}
	port := f.port
	if at, ok := l.Addr().(*net.TCPAddr); ok {
		port = at.Port
	}
	page := ui.New(ui.Options{API: api, SignIn: ui.ByLink, Port: port, Namespace: f.namespace,
		Version: release.Version(), Command: ui.Command{Kubeconfig: client.Kubeconfig, Context: client.Context}})
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	link := func() string { return "http://" + net.JoinHostPort(f.address, strconv.Itoa(port)) + page.Link() }
	f.tell(t, host, link)
	allowed := append([]int{0, os.Geteuid()}, sudoUser(os.Getenv)...)
	return serveUI(ctx, &peer.Listener{Listener: l, Allowed: allowed, Refused: refusals(t.Err)}, page)
}

// tell prints the link, opens another one where there is a desktop, and goes on to print one for each Enter.
func (f *uiFlags) tell(t Terminal, host string, link func() string) {
	terminal := cmdline.ReadsTerminal(t.In)
	hint := "Ctrl-C ends the page."
	if terminal {
		hint = "Enter prints another one; Ctrl-C ends the page."
	}
	fmt.Fprintf(t.Err, "The page of the server at %s. This link signs in once, within five minutes. %s\n", host, hint)
	fmt.Fprintln(t.Out, link())
	if !f.noOpen && onDesktop(os.Getenv, os.Geteuid()) {
		open := exec.Command("xdg-open", link()) // of its own: whoever reads the printed one does not use it up
		open.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := open.Start(); err != nil {
			fmt.Fprintf(t.Err, "No browser was opened (%v): open the link yourself.\n", err)
		} else {
			go func() { _ = open.Wait() }() // it may last as long as the browser
		}
	}
	if terminal {
		signal.Ignore(syscall.SIGTTIN) // in the background the terminal is somebody else's; reading it would stop us
		go onEnter(t.In, func() { fmt.Fprintln(t.Out, link()) })
	}
}

// sudoUser is whoever has become root for this command: the browser is theirs.
func sudoUser(getenv func(string) string) []int {
	if uid, err := strconv.Atoi(getenv("SUDO_UID")); err == nil {
		return []int{uid}
	}
	return nil
}

// refusals says whose connections were closed, once for each user.
func refusals(out io.Writer) func(uid int) {
	said := map[int]bool{}
	return func(uid int) {
		if said[uid] {
			return
		}
		said[uid] = true
		who := "a program whose owner cannot be determined"
		if uid >= 0 {
			who = fmt.Sprintf("user %d of this machine", uid)
		}
		fmt.Fprintf(out, "Refused a connection of %s: the page is for you alone.\n", who)
	}
}

// onDesktop reports whether a browser can be opened for the user: root's would be another one's.
func onDesktop(getenv func(string) string, uid int) bool {
	return uid != 0 && getenv("DISPLAY")+getenv("WAYLAND_DISPLAY") != ""
}

// onEnter calls do for each line, until there are no more.
func onEnter(in io.Reader, do func()) {
	b := make([]byte, 512)
	for {
		n, err := in.Read(b)
		for _, c := range b[:n] {
			if c == '\n' {
				do()
			}
		}
		switch {
		case errors.Is(err, syscall.EIO): // in the background the terminal is somebody else's
			time.Sleep(time.Second)
		case err != nil:
			return
		}
	}
}

func listenAt(address string, port int) (net.Listener, error) {
	at := net.JoinHostPort(address, strconv.Itoa(port))
	l, err := net.Listen("tcp", at)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d is in use: choose another one, or leave --port out for any free one", port)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("port %d needs root: choose a port above 1023", port)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", at, err)
	}
	return l, nil
}
