// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"log/slog"
	"os"
	"testing"
)

// BenchmarkStart measures a start on a data folder that was used before, and the end.
func BenchmarkStart(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("needs root")
	}
	dir := b.TempDir()
	b.Cleanup(func() {
		if err := Purge(context.Background(), dir); err != nil {
			b.Error(err)
		}
	})
	for i := 0; b.Loop(); i++ {
		r, err := Start(b.Context(), Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
