// SPDX-License-Identifier: Apache-2.0

package onhost

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/hostdebug"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// completeTime bounds how long somebody waits who has pressed Tab.
const completeTime = 2 * time.Second

// Complete completes a target: after docker: its containers, before it the pods and the words that targets begin with
// (DA-13).
func (f *Flags) Complete(pods cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		word, _, colon := strings.Cut(typed, ":")
		if colon {
			return f.targets(cmd.Context(), target.Engine(word), typed), cobra.ShellCompDirectiveNoFileComp
		}
		found, how := pods(cmd, args, typed)
		if words := beginnings(typed); len(words) > 0 {
			return append(found, words...), how | cobra.ShellCompDirectiveNoSpace
		}
		return found, how
	}
}

// beginnings are the words that targets of this machine begin with. For nothing typed yet there are none: pods are
// meant mostly.
func beginnings(typed string) (words []string) {
	if typed == "" {
		return nil
	}
	for _, e := range target.Engines() {
		if strings.HasPrefix(string(e), typed) {
			words = append(words, string(e)+":")
		}
	}
	return words
}

// targets are those of an engine that begin with what was typed; none where they cannot be asked for.
func (f *Flags) targets(ctx context.Context, kind target.Engine, typed string) []string {
	if os.Geteuid() != 0 {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	e, done, err := hostdebug.Engine(ctx, kind, f.Options())
	if err != nil || e == nil {
		return nil
	}
	defer func() { _ = done() }() // it was only asked
	list, err := e.List(ctx)
	if err != nil {
		return nil
	}
	return named(list, typed)
}

// named are the targets that begin with what was typed, with what they are.
func named(list []*engines.Container, typed string) (words []string) {
	for _, c := range list {
		if name := c.Target.String(); strings.HasPrefix(name, typed) {
			words = append(words, name+"\t"+strings.TrimSpace(string(c.State)+" "+c.Image))
		}
	}
	return words
}
