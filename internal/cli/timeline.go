// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/plain"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/podtime"
	"github.com/wherryproject/wherry/internal/timeline"
)

// timelineFlags are the flags of `wherry timeline`.
type timelineFlags struct {
	reach.Flags
	output   string
	watch    bool
	utc      bool
	noColour bool
	names    bool
}

func newTimeline(t Terminal) *cobra.Command {
	f := &timelineFlags{}
	cmd := &cobra.Command{
		Use:   "timeline POD",
		Short: "Draw the life of a pod: what took how long and why",
		Long: `Draw the life of a pod as bars over time: one row for the pod (volumes, sandbox, readiness) and one for each container
(image pull, create, start, started, ready, hooks, probes, restarts, stop signal, exit code). The last line says where the time
until readiness went.

The pod's node keeps this data, even when its agent restarts, and for an hour after the pod is gone. Quiet periods are
shortened on the axis. Without colour, bars differ by their characters; the legend explains those that are used.

With --names it instead lists the names that the pod has last looked up (DNS), with the answers.`,
		Example: `  wherry timeline web
  wherry timeline -n shop web -w             # follow it as it happens
  wherry timeline web -o wide                # and list every moment with its time
  wherry timeline web -o svg > web.svg       # a picture; html adds a table
  wherry timeline web --names                # which names it has looked up
  wherry timeline web -o json | jq '.moments[] | select(.failed)'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command,
			args []string) error {
			return f.run(cmd.Context(), t, reach.PodName(args[0]))
		},
		ValidArgsFunction: f.CompletePods,
	}
	fl := cmd.Flags()
	f.AddTo(cmd)
	fl.StringVarP(&f.output, "output", "o", "", "wide, json, svg or html")
	fl.BoolVarP(&f.watch, "watch", "w", false, "keep following until the pod is gone")
	fl.BoolVar(&f.names, "names", false, "list the last 100 names that the pod has looked up, with the answers")
	fl.BoolVar(&f.utc, "utc", false, "show clock times in UTC instead of local time")
	fl.BoolVar(&f.noColour, "no-color", false, "do not use colours (also $NO_COLOR)")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"wide", "json", "svg", "html"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *timelineFlags) check() error {
	switch {
	case f.output != "" && f.output != "wide" && f.output != "json" && f.output != "svg" && f.output != "html":
		return cmdline.ExitWith(exitUsage, fmt.Errorf("-o %s: use wide, json, svg or html", f.output))
	case f.watch && (f.output == "svg" || f.output == "html"):
		return cmdline.ExitWith(exitUsage, fmt.Errorf("-o %s draws a single picture, so it cannot be combined with -w",
			f.output))
	}
	if f.names && (f.watch || f.output != "" && f.output != "json") {
		return cmdline.ExitWith(exitUsage,
			errors.New("--names lists what was looked up until now: leave out -w, and -o except -o json"))
	}
	return nil
}

func (f *timelineFlags) run(ctx context.Context, t Terminal, name string) error {
	if err := f.check(); err != nil {
		return err
	}
	client, err := f.Connect()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	source := podtime.Source{Client: client}
	if f.watch {
		err = f.follow(ctx, t, source, name)
		if ctx.Err() != nil {
			return nil // Ctrl-C is how following ends
		}
		return err
	}
	get := source.Get
	if f.names {
		get = source.Names
	}
	h, err := get(ctx, f.Namespace, name)
	if err != nil {
		return err
	}
	if f.names && f.output == "" {
		fmt.Fprint(t.Out, timeline.NamesText(h, f.options(t)))
		return nil
	}
	switch f.output {
	case "json":
		out := json.NewEncoder(t.Out)
		out.SetIndent("", "  ")
		return out.Encode(h)
	case "svg":
		fmt.Fprint(t.Out, timeline.SVG(h, f.zone()))
	case "html":
		fmt.Fprint(t.Out, timeline.HTML(h, f.zone()))
	default:
		fmt.Fprint(plain.Own(t.Out), plain.Coloured(timeline.Text(h, f.options(t))))
	}
	return nil
}

func (f *timelineFlags) zone() *time.Location {
	if f.utc {
		return time.UTC
	}
	return time.Local
}

func (f *timelineFlags) options(t Terminal) timeline.Options {
	width, _ := cmdline.Size(t.Out)
	return timeline.Options{Width: width, Colour: cmdline.IsTerminal(t.Out) && !f.noColour, ASCII: asciiOnly(os.Getenv),
		Zone: f.zone(), Moments: f.output == "wide"}
}

// asciiOnly finds out from the locale whether the terminal has nothing but ASCII. No locale says nothing against it.
func asciiOnly(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			return !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8")
		}
	}
	return false
}

// redraw is how often a picture that is followed moves on when nothing happens.
const redraw = 500 * time.Millisecond

// follow shows a pod's timeline as it grows: on a terminal the picture, drawn anew in its place; else its moments, line
// by line; with -o json what the node says.
func (f *timelineFlags) follow(ctx context.Context, t Terminal, source podtime.Source, name string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts, failed := make(chan timeline.History), make(chan error, 1)
	go func() {
		failed <- source.Follow(ctx, f.Namespace, name, func(part timeline.History) {
			select {
			case parts <- part:
			case <-ctx.Done():
			}
		})
	}()
	show := f.shower(t)
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	var h timeline.History
	var heard time.Time
	for {
		select {
		case part := <-parts:
			if part.UID != "" && part.UID != h.UID {
				h = timeline.History{}
			}
			h.Merge(part)
			heard = time.Now()
			show(h, &part)
		case <-tick.C:
			if !heard.IsZero() {
				now := h
				now.Now = h.Now.Add(time.Since(heard))
				show(now, nil)
			}
		case err := <-failed:
			return err
		}
	}
}

// shower returns what shows a history; part is what has just come, or nil when only time has passed.
func (f *timelineFlags) shower(t Terminal) func(h timeline.History, part *timeline.History) {
	_, height := cmdline.Size(t.Out)
	switch {
	case f.output == "json":
		out := json.NewEncoder(t.Out)
		return func(_ timeline.History, part *timeline.History) {
			if part != nil {
				_ = out.Encode(part)
			}
		}
	case height == 0:
		return func(h timeline.History, part *timeline.History) {
			if part == nil {
				return
			}
			fmt.Fprint(t.Out, timeline.News(h, *part, f.options(t)))
			if h.Gone {
				fmt.Fprintln(t.Out, timeline.Summary(h))
			}
		}
	}
	drawn := 0
	return func(h timeline.History, _ *timeline.History) {
		lines := strings.Split(strings.TrimSuffix(plain.Coloured(timeline.Text(h, f.options(t))), "\n"), "\n")
		if _, height := cmdline.Size(t.Out); len(lines) > height-1 && height > 1 {
			lines = lines[:height-1] // what does not fit would scroll away for good at each drawing
		}
		up := ""
		if drawn > 0 {
			up = fmt.Sprintf("\x1b[%dA", drawn)
		}
		fmt.Fprintf(plain.Own(t.Out), "%s\r\x1b[J%s\n", up, strings.Join(lines, "\n"))
		drawn = len(lines)
	}
}
