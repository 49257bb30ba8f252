// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/manifest"
)

// check refuses what a run cannot take, before anything is done.
func (r *Runner) check(objects []manifest.Object) error {
	client := r.Client
	errs := r.twice(objects)
	for _, o := range objects {
		if _, ok := verbsFor(client, "", o.Object); !ok {
			errs = append(errs, fmt.Errorf("%s: wherry run does not support %s: %s", place(o), o.GVK.Kind,
				instead(serves(client, o))))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if !slices.ContainsFunc(objects, func(o manifest.Object) bool { return isPod(o.Object) || isWorkload(o.Object) }) {
		return errors.New("there is no pod in the manifest, nor anything that creates pods; use wherry kubectl apply for other objects")
	}
	return nil
}

// twice refuses objects that the manifests have more than once: only the last would count, and pods run once.
func (r *Runner) twice(objects []manifest.Object) (errs []error) {
	type key struct{ group, kind, namespace, name string }
	first := map[key]manifest.Object{}
	for _, o := range objects {
		m, ns := r.defaultNamespace(o.Object)
		if m.GetName() == "" { // each gets a name of its own
			continue
		}
		k := key{o.GVK.Group, o.GVK.Kind, ns, m.GetName()}
		if before, ok := first[k]; ok {
			errs = append(errs, fmt.Errorf("%s: %s %s is also at %s: leave one of them out", place(o),
				strings.ToLower(o.GVK.Kind), m.GetName(), place(before)))
			continue
		}
		first[k] = o
	}
	return errs
}

// serves asks the server whether it has a kind at all. One that does not answer is taken not to.
func serves(client kubernetes.Interface, o manifest.Object) bool {
	list, err := client.Discovery().ServerResourcesForGroupVersion(o.GVK.GroupVersion().String())
	if err != nil {
		return false
	}
	for _, r := range list.APIResources {
		if r.Kind == o.GVK.Kind {
			return true
		}
	}
	return false
}

// instead says what can be done with an object that a run does not take.
func instead(served bool) string {
	if served {
		return "create it first, with wherry kubectl apply -f and a manifest of its own"
	}
	return "the server does not have this kind: leave it out"
}
