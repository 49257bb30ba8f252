// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/wherryproject/wherry/internal/pki"
)

func secretOf(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ca", Namespace: "ns"}, Data: data}
}

// Who finds a Secret that is empty fills it; who comes later, or loses the race, takes what is there. Proves DA-07.
func TestLoad(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	client := fake.NewClientset(secretOf(nil))
	var once sync.Once
	rival, err := Load(t.Context(), fake.NewClientset(secretOf(nil)), "ns", "ca", []string{"a.ns.svc"}, log)
	if err != nil {
		t.Fatal(err)
	}
	var theirs []byte
	client.PrependReactor("update", "secrets", func(clienttesting.Action) (handled bool, _ runtime.Object, err error) {
		once.Do(func() { // another replica was faster
			other, key, e := newPair()
			if e != nil {
				t.Error(e)
			}
			theirs = other
			if e := client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"),
				secretOf(map[string][]byte{keyCert: other, keyKey: key}), "ns"); e != nil {
				t.Error(e)
			}
			handled, err = true, apierrors.NewConflict(corev1.Resource("secrets"), "ca", nil)
		})
		return handled, nil, err
	})
	got, err := Load(t.Context(), client, "ns", "ca", []string{"a.ns.svc"}, log)
	if err != nil {
		t.Fatal(err)
	}
	if len(theirs) == 0 || !bytes.Equal(got.CertPEM(), theirs) || bytes.Equal(got.CertPEM(), rival.CertPEM()) {
		t.Error("who lost the race did not take the other's authority")
	}
	again, err := Load(t.Context(), client, "ns", "ca", []string{"a.ns.svc"}, log)
	if err != nil || !bytes.Equal(again.CertPEM(), theirs) {
		t.Errorf("who came later has another authority: %v", err)
	}
}

// Whose authority was replaced, or taken out, writes it nowhere any more: two would take turns. Proves DA-07.
func TestReplaced(t *testing.T) {
	client := fake.NewClientset(secretOf(nil))
	a, err := Load(t.Context(), client, "ns", "ca", []string{"a.ns.svc"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Check(t.Context()); err != nil {
		t.Errorf("its own: %v", err)
	}
	other, key, err := newPair()
	if err != nil {
		t.Fatal(err)
	}
	secrets := client.CoreV1().Secrets("ns")
	for _, data := range []map[string][]byte{{keyCert: other, keyKey: key}, nil} {
		if _, err := secrets.Update(t.Context(), secretOf(data), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		// a registration that could not be written to: nothing is even tried
		b := &Bundle{Check: a.Check, Log: slog.New(slog.DiscardHandler)}
		if err := b.Run(t.Context()); !errors.Is(err, ErrReplaced) {
			t.Errorf("with %d keys: %v", len(data), err)
		}
	}
	if err := secrets.Delete(t.Context(), "ca", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := a.Check(t.Context()); !errors.Is(err, ErrReplaced) {
		t.Errorf("without a Secret: %v", err)
	}
	client.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServiceUnavailable("later")
	})
	if err := a.Check(t.Context()); err == nil || errors.Is(err, ErrReplaced) {
		t.Errorf("a Secret that cannot be read is taken for another one: %v", err)
	}
}

// A Secret that makes no sense is not overwritten: whoever trusts what it was would be locked out.
func TestLoadRefuses(t *testing.T) {
	cert, key, err := newPair()
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := newPair()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		secret *corev1.Secret
		want   string
	}{
		{secretOf(map[string][]byte{keyCert: cert}), "only one of"},
		{secretOf(map[string][]byte{keyKey: key}), "only one of"},
		{secretOf(map[string][]byte{keyCert: other, keyKey: key}), "does not belong"},
		{secretOf(map[string][]byte{keyCert: []byte("x"), keyKey: key}), "no PEM certificate"},
		{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "another", Namespace: "ns"}}, "install it again"},
	} {
		client := fake.NewClientset(c.secret)
		_, err := Load(t.Context(), client, "ns", "ca", nil, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want words with %q", err, c.want)
		}
		for _, a := range client.Actions() {
			if a.GetVerb() != "get" {
				t.Errorf("%s: %s", c.want, a.GetVerb())
			}
		}
	}
}

func newPair() (cert, key []byte, err error) {
	ca, key, err := pki.New("test")
	if err != nil {
		return nil, nil, err
	}
	return ca.CertPEM(), key, nil
}
