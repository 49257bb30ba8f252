// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// held is an object that stays, whose watches say what they are given and end.
type held struct {
	o    *unstructured.Unstructured
	says watch.EventType
	gets int
}

func (h *held) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	h.gets++
	return h.o, nil
}

func (h *held) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	w := watch.NewFakeWithChanSize(1, false)
	if h.says != "" {
		w.Action(h.says, h.o)
	} else {
		w.Stop()
	}
	return w, nil
}

// A server that ends watches at once is not asked as fast as it can answer, until the time is over, which is said; what
// is deleted is gone at once.
func TestGone(t *testing.T) {
	for says, c := range map[watch.EventType]struct {
		err  error
		took time.Duration
		gets int
	}{"": {errTime, time.Minute, 61}, watch.Error: {errTime, time.Minute, 61}, watch.Deleted: {nil, 0, 1}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			h := &held{o: &unstructured.Unstructured{}, says: says}
			err := gone(ctx, h, h.o)
			if took := time.Since(began); !errors.Is(err, c.err) || took != c.took || h.gets > c.gets {
				t.Errorf("%q: %v after %v, asked %d times", says, err, took, h.gets)
			}
		})
	}
}

// A file that is called off ends with the next that is written of it, and is not there.
func TestCalledOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	writes := 0
	err := whole(ctx, filepath.Join(dir, "x.tar"), func(w io.Writer) error {
		for ; writes < 10; writes++ {
			if _, err := io.WriteString(w, "x"); err != nil {
				return err
			}
			cancel()
		}
		return nil
	})
	left, _ := os.ReadDir(dir)
	if !errors.Is(err, context.Canceled) || writes != 1 || len(left) > 0 {
		t.Errorf("%v after %d writes, %v", err, writes, left)
	}
}
