// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
)

// Every stored kind survives the way to etcd and back, and every kind has printers, rules and selectors that take its type.
func TestTableOfKinds(t *testing.T) {
	s, err := schemes.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range All(nil) {
		if k.Foreign != nil {
			continue // Kubernetes' own storage and codecs, see internal/api/upstream
		}
		t.Run(k.Plural, func(t *testing.T) {
			obj := k.Object()
			gvks, _, err := s.ObjectKinds(obj)
			if err != nil || gvks[0] != k.GV.WithKind(k.Name) {
				t.Errorf("kinds %v, %v", gvks, err)
			}
			hub := k.GV
			hub.Version = runtime.APIVersionInternal
			if !slices.Contains(gvks, hub.WithKind(k.Name)) {
				t.Errorf("not registered as hub: %v", gvks)
			}
			codec := k.StorageCodec(s)
			data, err := runtime.Encode(codec, obj)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := codec.Decode(data, nil, k.Object()); err != nil {
				t.Error(err)
			}
			if _, _, err := k.Attrs()(obj); err != nil {
				t.Error(err)
			}
			if k.Rules.Validate == nil {
				t.Error("nothing validates it")
			}
			if _, err := registry.TableConvertor(k).ConvertToTable(context.Background(), obj, nil); err != nil {
				t.Error(err)
			}
			strategy := registry.NewStrategy(s, k, k.Rules)
			strategy.PrepareForCreate(context.Background(), obj)
			if errs := strategy.Validate(context.Background(), obj); len(errs) == 0 {
				t.Error("an empty object is valid")
			}
		})
	}
}
