// SPDX-License-Identifier: Apache-2.0

package onhost

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/hostdebug/guard"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// Stop ends all debug sessions of a target.
func Stop(t cmdline.Terminal, to target.Target) error {
	if os.Geteuid() != 0 {
		return errors.New("stopping debug sessions of this machine needs root: run it with sudo")
	}
	m := guard.Here()
	all, err := m.Sessions()
	if err != nil {
		return err
	}
	stopped := 0
	for _, r := range all {
		if r.Target != to.String() {
			continue
		}
		if err := m.Stop(r, cmp.Or(os.Getenv("SUDO_USER"), "root")); err != nil {
			return fmt.Errorf("session %s: %w", r.ID, err)
		}
		stopped++
		fmt.Fprintf(t.Out, "debug session %s of %s stopped\n", r.ID, r.Target)
	}
	if stopped == 0 {
		return fmt.Errorf("%s has no debug session: wherry ps --sessions lists those that there are", to)
	}
	return nil
}

func (f *psFlags) printSessions(t cmdline.Terminal) error {
	all, err := guard.Here().Sessions()
	if err != nil {
		return err
	}
	switch f.output {
	case "json", "yaml":
		if all == nil {
			all = []guard.Record{}
		}
		return cmdline.PrintAs(t, f.output, all)
	case "name":
		for _, r := range all {
			fmt.Fprintln(t.Out, r.Target)
		}
		return nil
	}
	table := cmdline.Table{Head: []string{"TARGET", "COMMAND", "USER", "AGE", "LEFT"}, None: "no debug sessions found"}
	for _, r := range all {
		left := ""
		if !r.Until.IsZero() {
			left = duration.HumanDuration(time.Until(r.Until))
		}
		table.Add(r.Target, strings.Join(r.Command, " "), cmp.Or(r.User, "root"),
			duration.HumanDuration(time.Since(r.Since)), left)
	}
	return table.Print(t)
}
