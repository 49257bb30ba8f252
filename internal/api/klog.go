// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"log/slog"

	"k8s.io/klog/v2"
)

// RouteKlog sends what the Kubernetes libraries log to logger, from warnings upwards: they say much at Info that means nothing
// to a person. It acts on the whole process, since klog is global.
func RouteKlog(logger *slog.Logger) {
	klog.SetSlogLogger(slog.New(atLeast{logger.Handler(), slog.LevelWarn}))
}

// atLeast is a slog.Handler that drops what is below a level.
type atLeast struct {
	slog.Handler
	level slog.Level
}

// Enabled implements slog.Handler.
func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (h atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup implements slog.Handler.
func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}
