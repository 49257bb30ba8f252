// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
)

// Every component is listed once, and after those whose parts it uses: undoing them in reverse takes nothing away that
// is in use.
func TestComponentsAreInOrder(t *testing.T) {
	s := &Server{log: slog.New(slog.DiscardHandler)}
	var before []string
	for _, c := range s.components(t.Context()) {
		for _, name := range c.after {
			if !slices.Contains(before, name) {
				t.Errorf("%s is listed before %s, which it uses", c.name, name)
			}
		}
		if slices.Contains(before, c.name) {
			t.Errorf("%s is listed twice", c.name)
		}
		before = append(before, c.name)
	}
}

// A start that fails is undone in reverse, without what has failed; the same is not undone twice.
func TestStartIsUndoneInReverse(t *testing.T) {
	s := &Server{log: slog.New(slog.DiscardHandler)}
	var done []string
	part := func(name string, err error) component {
		return component{name: name, start: func() error { done = append(done, name); return err },
			stop: func() { done = append(done, "not "+name) }}
	}
	bare := component{name: "bare", start: func() error { return nil }}
	failed := errors.New("no room")
	list := []component{part("a", nil), bare, part("b", nil), part("c", failed), part("d", nil)}
	if err := s.start(list); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	s.free()
	s.free()
	if want := []string{"a", "b", "c", "not b", "not a"}; !slices.Equal(done, want) {
		t.Errorf("%v, want %v", done, want)
	}
}
