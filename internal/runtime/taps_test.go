// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"

	"github.com/wherryproject/wherry/internal/runtime/tap"
)

// EC-16, SC-19: a container whose output need not be kept starts without a tap where there is no room for one, and one whose output
// must be does not start; whatever the runtime says of a start is said as it is, and nothing is tried twice.
func TestNoRoomForATap(t *testing.T) {
	refused := errors.New("refused")
	for _, tt := range []struct {
		name    string
		room    bool
		fromNow bool
		says    error
		want    []string // the stdouts that the shim was given, one for each start
		fails   bool
	}{
		{"no room, needed", false, false, nil, nil, true},
		{"no room, not needed", false, true, nil, []string{"stdout"}, false},
		{"no room, not needed, refused", false, true, refused, []string{"stdout"}, true},
		{"room, refused", true, true, refused, []string{"stdout.tap"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.room {
				if err := os.Mkdir(filepath.Join(dir, "c"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			in := &tasks.CreateTaskRequest{ContainerID: "c", Stdout: filepath.Join(dir, "c", "stdout"),
				Stderr: filepath.Join(dir, "c", "stderr")}
			spec := tap.Spec{Stdout: in.Stdout, Stderr: in.Stderr, FromNow: tt.fromNow}
			for _, path := range []string{in.Stdout, in.Stderr} {
				if tt.room {
					if err := os.WriteFile(path, nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			var got []string
			err := createTapped(tap.New(dir, slog.New(slog.DiscardHandler)), spec, in, func(in *tasks.CreateTaskRequest) error {
				got = append(got, filepath.Base(in.Stdout))
				return tt.says
			})
			if (err != nil) != tt.fails || tt.says != nil && !errors.Is(err, tt.says) {
				t.Errorf("it fails with %v", err)
			}
			if len(got) != len(tt.want) || len(got) > 0 && got[0] != tt.want[0] {
				t.Errorf("the shim was given %v, want %v", got, tt.want)
			}
		})
	}
}
