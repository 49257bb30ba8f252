// SPDX-License-Identifier: Apache-2.0

package onwrite_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/wherryproject/wherry/internal/api/onwrite"
)

// party notes what it is called for.
func party(name string, said *[]string, refuses bool) onwrite.Calls {
	say := func(what string) { *said = append(*said, name+" "+what) }
	begin := func(what string, dry bool) (onwrite.Finish, error) {
		if dry {
			what += " dry"
		}
		say(what)
		if refuses {
			return nil, errors.New(name + " refuses")
		}
		return func(ok bool) {
			if ok {
				say("done")
			} else {
				say("undone")
			}
		}, nil
	}
	return onwrite.Calls{
		Creating: func(_ runtime.Object, dry bool) (onwrite.Finish, error) { return begin("creating", dry) },
		Updating: func(_, _ runtime.Object, dry bool) (onwrite.Finish, error) { return begin("updating", dry) },
		Created:  func(runtime.Object) { say("created") },
		Updated:  func(runtime.Object) { say("updated") },
		Deleted:  func(runtime.Object) { say("deleted") },
	}
}

// TestAll proves that every party is called, one that wants nothing among them, also through a copy of the store that is older than the
// parties; that a dry run is begun and never reported; and that who has begun hears that somebody else has refused.
func TestAll(t *testing.T) {
	var said []string
	store := &registry.Store{}
	hooks := onwrite.Of(store)
	older := *store
	for _, c := range []onwrite.Calls{party("a", &said, false), {}, party("b", &said, false)} {
		hooks.Add(c)
	}
	obj, dry := &corev1.Pod{}, []string{metav1.DryRunAll}
	create := func(s *registry.Store, ok bool, flags ...string) {
		finish, err := s.BeginCreate(t.Context(), obj, &metav1.CreateOptions{DryRun: flags})
		if err != nil {
			t.Fatal(err)
		}
		finish(context.Background(), ok)
	}
	expect := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(said, want) {
			t.Errorf("%s: %s; want %s", what, strings.Join(said, ", "), strings.Join(want, ", "))
		}
		said = nil
	}
	create(&older, true)
	expect("a creation", "a creating", "b creating", "b done", "a done")
	create(store, false, dry...)
	expect("a dry one that fails", "a creating dry", "b creating dry", "b undone", "a undone")
	finish, err := older.BeginUpdate(t.Context(), obj, obj, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	finish(t.Context(), true)
	expect("an update", "a updating", "b updating", "b done", "a done")

	older.AfterCreate(obj, &metav1.CreateOptions{})
	older.AfterUpdate(obj, &metav1.UpdateOptions{})
	older.AfterDelete(obj, nil)
	expect("afterwards", "a created", "b created", "a updated", "b updated", "a deleted", "b deleted")
	store.AfterCreate(obj, &metav1.CreateOptions{DryRun: dry})
	store.AfterUpdate(obj, &metav1.UpdateOptions{DryRun: dry})
	store.AfterDelete(obj, &metav1.DeleteOptions{DryRun: dry})
	expect("after a dry run")

	hooks.Add(party("c", &said, true))
	if _, err := store.BeginCreate(t.Context(), obj, &metav1.CreateOptions{}); err == nil || err.Error() != "c refuses" {
		t.Errorf("refused with %v", err)
	}
	expect("a refusal", "a creating", "b creating", "c creating", "b undone", "a undone")
}
