// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
)

// bundleEvery is how often it is looked whether the APIService still has the CA: whoever installs again may have taken
// it out, and the API may not watch APIServices.
const bundleEvery = time.Minute

// Bundle keeps a CA in an APIService, by which kube-apiserver knows the API.
type Bundle struct {
	Client clientset.Interface
	Name   string // of the APIService
	CA     []byte // PEM
	// Check reports whether the CA is still the one to be written; an error ends Run where it is ErrReplaced.
	Check func(context.Context) error
	Log   *slog.Logger
}

// Write writes the CA where another one, or none, is.
func (b *Bundle) Write(ctx context.Context) error {
	services := b.Client.ApiregistrationV1().APIServices()
	service, err := services.Get(ctx, b.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("APIService %s: %w", b.Name, err)
	}
	if bytes.Equal(service.Spec.CABundle, b.CA) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"caBundle": b.CA}})
	if err != nil {
		return err
	}
	if _, err := services.Patch(ctx, b.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("APIService %s: %w", b.Name, err)
	}
	b.Log.Info("the APIService knows the authority", "apiservice", b.Name)
	return nil
}

// Run keeps it there until ctx is done, and returns nil, or until the CA is another one, and returns ErrReplaced.
func (b *Bundle) Run(ctx context.Context) error {
	tick := time.NewTicker(bundleEvery)
	defer tick.Stop()
	for {
		err := b.Check(ctx)
		if errors.Is(err, ErrReplaced) {
			return err
		}
		if err == nil {
			err = b.Write(ctx)
		}
		if err != nil && ctx.Err() == nil {
			b.Log.Error("the authority cannot be written into the APIService", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
