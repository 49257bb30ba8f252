// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/wherryproject/wherry/internal/api/klogs"
)

// LogFlags choose what a server logs.
type LogFlags struct {
	Level, Format string
	verbosity     int
	All           *pflag.FlagSet // of the command
}

func (f *LogFlags) AddTo(cmd *cobra.Command) {
	f.All = cmd.Flags()
	cmd.Flags().StringVar(&f.Level, "log-level", "info", "debug, info, warn or error")
	cmd.Flags().StringVar(&f.Format, "log-format", "text", "text or json")
	cmd.Flags().IntVarP(&f.verbosity, "v", "v", 0,
		"log verbosity of the Kubernetes libraries; 2 and above also sets --log-level debug")
}

// Logger makes the logger and gives it to the Kubernetes libraries, whose own logger is a global.
func (f *LogFlags) Logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.Level)); err != nil {
		return nil, ExitWith(ExitUsage, fmt.Errorf("--log-level %s: use debug, info, warn or error", f.Level))
	}
	if f.verbosity >= 2 && level > slog.LevelDebug {
		level = slog.LevelDebug
	}
	if f.verbosity < 0 {
		return nil, ExitWith(ExitUsage, fmt.Errorf("--v %d: use 0 or more", f.verbosity))
	}
	opts := &slog.HandlerOptions{Level: level}
	var handler slog.Handler
	switch f.Format {
	case "text":
		handler = slog.NewTextHandler(w, opts)
	case "json":
		handler = slog.NewJSONHandler(w, opts)
	default:
		return nil, ExitWith(ExitUsage, fmt.Errorf("--log-format %s: use text or json", f.Format))
	}
	log := slog.New(handler)
	if err := libraryVerbosity(f.verbosity); err != nil {
		return nil, err
	}
	if f.verbosity == 0 {
		klogs.Route(log)
	} else {
		klog.SetSlogLogger(log)
	}
	return log, nil
}

// SilenceLibraries keeps what the Kubernetes libraries log off a command's output, which says in its own words what a
// person needs to know.
func SilenceLibraries() { klog.SetSlogLogger(slog.New(slog.DiscardHandler)) }

func libraryVerbosity(n int) error {
	var l klog.Level
	return l.Set(strconv.Itoa(n))
}
