// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"log/slog"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RS-07: the labels of namespaces are known also without the store; a file that is missing or damaged is as good as none.
func TestSpaces(t *testing.T) {
	s := &Server{opts: Options{DataDir: t.TempDir()}, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if got := readSpaces(s.opts.DataDir); got.Revision != 0 || len(got.Labels) > 0 {
		t.Errorf("without a file: %+v", got)
	}
	list := []*corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: "shop", ResourceVersion: "70", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "bare", ResourceVersion: "7"}},
	}
	written := s.writeSpaces(spacesOf(list), nil)
	got := readSpaces(s.opts.DataDir)
	if got.Revision != 70 || got.Labels["shop"]["pod-security.kubernetes.io/enforce"] != "restricted" || len(got.Labels) != 2 {
		t.Errorf("%+v", got)
	}
	if err := os.Remove(spacesFile(s.opts.DataDir)); err != nil {
		t.Fatal(err)
	}
	s.writeSpaces(spacesOf(list), written)
	if _, err := os.Stat(spacesFile(s.opts.DataDir)); err == nil {
		t.Error("written again, though nothing has changed")
	}
	if err := os.WriteFile(spacesFile(s.opts.DataDir), []byte(`{"revision":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := readSpaces(s.opts.DataDir); got.Revision != 0 {
		t.Errorf("damaged: %+v", got)
	}
}
