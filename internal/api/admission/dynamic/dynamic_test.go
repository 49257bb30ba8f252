// SPDX-License-Identifier: Apache-2.0

package dynamic

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/wherryproject/wherry/internal/api/kinds"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
	"github.com/wherryproject/wherry/internal/store"
)

func noConfig(string) io.Reader { return nil }

// EC-21: when it cannot be known whether there are rules, requests are refused.
func TestWebhooksUnknownRefuse(t *testing.T) {
	dir := t.TempDir()
	e, err := store.Start(t.Context(), store.Config{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	types, err := schemes.New()
	if err != nil {
		t.Fatal(err)
	}
	where := storagebackend.NewDefaultConfig("/registry", nil)
	where.Transport.ServerList = []string{e.Endpoint()}
	stores, err := registry.OpenStores(&registry.Backend{Schemes: types, Config: *where}, kinds.All(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer stores.Close()
	d, err := New(stores, types, noConfig, slog.New(slog.DiscardHandler), func() (Connection, error) {
		return Connection{}, errors.New("nothing is to be made")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	core := corev1.SchemeGroupVersion
	about := admission.NewAttributesRecord(&corev1.ConfigMap{}, nil, core.WithKind("ConfigMap"), "default", "c",
		core.WithResource("configmaps"), "", admission.Create, &metav1.CreateOptions{}, false, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // as if etcd did not answer
	objects := admission.NewObjectInterfacesFromScheme(types.Scheme)
	for _, p := range []admission.Interface{d.MutatingPolicies(), d.MutatingWebhooks()} {
		if err := p.(admission.MutationInterface).Admit(ctx, about, objects); !apierrors.IsInternalError(err) ||
			!strings.Contains(err.Error(), "read the mutating") {
			t.Errorf("got %v", err)
		}
	}
	for _, p := range []admission.Interface{d.ValidatingPolicies(), d.ValidatingWebhooks()} {
		if err := p.(admission.ValidationInterface).Validate(ctx, about, objects); !apierrors.IsInternalError(err) ||
			!strings.Contains(err.Error(), "read the validating") {
			t.Errorf("got %v", err)
		}
		if err := p.(admission.ValidationInterface).Validate(t.Context(), about, objects); err != nil {
			t.Errorf("without rules: %v", err)
		}
	}
}

// What would make the webhooks' plug-ins useless is an error when the server is made.
func TestWebhookConfigurationIsChecked(t *testing.T) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\n"
	for _, tc := range []struct{ what, text, want string }{
		{"none", "", ""},
		{"empty", head, ""},
		{"another kind", "apiVersion: v1\nkind: Pod\n", "no kind"},
		{"unknown field", head + "x: y\n", "unknown field"},
		{"no such kubeconfig", head + "kubeConfigFile: /nowhere/kubeconfig\n", "/nowhere/kubeconfig"},
		{"static webhooks", head + "staticManifestsDir: /etc\n", "not supported"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			err := Config(func(plugin string) io.Reader {
				if plugin != "ValidatingAdmissionWebhook" || tc.text == "" {
					return nil
				}
				return strings.NewReader(tc.text)
			}).check()
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
