// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/server"
)

// foreground tells the person who started a server at a terminal what to try, and in the end what is left. Without a
// terminal the end is a line of the log.
type foreground struct {
	t       Terminal
	log     *slog.Logger
	dataDir string
	also    string // where else the kubeconfig is
	shared  bool   // others than root may read it
	agent   bool
}

// during prints when ready is closed; the returned function prints the end.
func (f foreground) during(ready <-chan struct{}) (ended func(error)) {
	over, printed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(printed)
		select {
		case <-ready:
			if cmdline.IsTerminal(f.t.Err) {
				fmt.Fprint(f.t.Err, f.welcome())
			}
		case <-over:
		}
	}()
	return func(err error) {
		close(over)
		<-printed
		left := podsOf(f.dataDir)
		switch {
		case err != nil: // which says enough
		case cmdline.IsTerminal(f.t.Err):
			fmt.Fprint(f.t.Err, f.farewell(left))
		default:
			f.log.Info("server has stopped; its pods keep running", "pods", left, "data", f.dataDir)
		}
	}
}

// welcome says where the way in is and what to try.
func (f foreground) welcome() string {
	if f.agent {
		return "\nThe agent is ready. Ctrl-C stops it; pods keep running.\n\n"
	}
	kubeconfig := datadir.Kubeconfig(f.dataDir) + f.whose()
	if f.also != "" {
		kubeconfig = f.also
	}
	return fmt.Sprintf(`
Wherry is ready. In another terminal, try:

  %s
  %s

Kubeconfig: %s
Ctrl-C stops the server; pods keep running.

`, f.command("kubectl get nodes"), f.command("kubectl run web --image nginx"), kubeconfig)
}

func (f foreground) whose() string {
	if f.shared {
		return ""
	}
	return " (for root)"
}

// farewell says what runs on, and how to get at it.
func (f foreground) farewell(pods int) string {
	start := "server"
	if f.agent {
		start = "agent"
	}
	var which string
	switch pods {
	case 0:
		return fmt.Sprintf("\nThe %s has stopped. No pods are running. To remove all its data: %s\n", start,
			f.command("purge"))
	case 1:
		which = "1 pod keeps running"
	default:
		which = fmt.Sprintf("%d pods keep running", pods)
	}
	return fmt.Sprintf("\nThe %s has stopped; %s. The next wherry %s takes over; to remove everything: %s\n", start,
		which, start, f.command("purge"))
}

// command is a command line for this data folder.
func (f foreground) command(text string) string {
	if f.dataDir == server.DefaultDataDir {
		return "sudo wherry " + text
	}
	first, rest, more := strings.Cut(text, " ")
	if more {
		rest = " " + rest
	}
	return "sudo wherry " + first + " --data-dir " + f.dataDir + rest
}

// podsOf counts the pods that a data folder has on this machine; they have a folder each.
func podsOf(dataDir string) int {
	folders, err := filepath.Glob(filepath.Join(dataDir, "pods", "*"))
	if err != nil {
		return 0
	}
	return len(folders)
}
