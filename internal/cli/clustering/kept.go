// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cluster/manifest"
	"github.com/wherryproject/wherry/internal/release"
)

// earlier is what was chosen at earlier calls.
type earlier struct {
	namespace string // empty: there is no installation
	values    []byte // a file of values
	unseen    bool   // it may not be read
}

// earlier asks the cluster for it.
func (c *connection) earlier(ctx context.Context) (earlier, error) {
	o, namespace, err := c.registration(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return earlier{}, nil
	case apierrors.IsForbidden(err):
		return earlier{unseen: true}, nil
	case err != nil:
		return earlier{}, err
	}
	return earlier{namespace: namespace, values: []byte(o.GetAnnotations()[manifest.ChoicesAt])}, nil
}

// objects are those that are to be installed, with what is chosen now over what was before; kept says what was kept of
// that, for the user.
func (in *installation) objects(ctx context.Context, t cmdline.Terminal, c *connection) (
	objects []*unstructured.Unstructured, kept string, err error) {
	var before earlier
	if !in.reset {
		if before, err = c.earlier(ctx); err != nil {
			return nil, "", err
		}
	}
	if before.values, err = in.without(before.values); err != nil {
		return nil, "", unreadable(err)
	}
	if _, err := manifest.Parse(before.values); err != nil {
		return nil, "", unreadable(err)
	}
	all, err := in.chosen(t, before.values)
	if err != nil {
		return nil, "", err
	}
	usual, err := manifest.Defaults()
	if err != nil {
		return nil, "", err
	}
	if !in.of.Changed("namespace") && all.Namespace == usual.Namespace && before.namespace != "" {
		all.Namespace = before.namespace
	}
	if objects, err = manifest.Objects(all, release.Version()); err != nil {
		return nil, "", err
	}
	choices, err := manifest.Choices(all)
	if err != nil {
		return nil, "", err
	}
	remember(objects, choices)
	words, err := sameIn(before.values, choices)
	if err == nil && all.Namespace == before.namespace && all.Namespace != usual.Namespace &&
		!in.of.Changed("namespace") {
		words = append(words, "namespace="+all.Namespace)
	}
	switch {
	case err != nil:
		return nil, "", unreadable(err)
	case before.unseen:
		kept = "you may not read the values of earlier installs: what is not given gets its default"
	case len(words) > 0:
		kept = "kept from the earlier installation: " + strings.Join(words, ", ") + " (--reset-values: the defaults)"
	}
	return objects, kept, nil
}

func unreadable(err error) error {
	return fmt.Errorf("the values of earlier installs cannot be read (annotation %s of apiservice %s): %w; "+
		"give all that you want, with --reset-values", manifest.ChoicesAt, registrationName, err)
}

// without takes out of earlier choices what a flag says as a whole now.
func (in *installation) without(before []byte) ([]byte, error) {
	if !in.of.Changed("node-selector") || len(before) == 0 {
		return before, nil
	}
	all, err := manifest.Parse(before)
	if err != nil {
		return nil, err
	}
	usual, err := manifest.Defaults()
	if err != nil {
		return nil, err
	}
	all.Agent.NodeSelector = usual.Agent.NodeSelector
	return manifest.Choices(all)
}

// remember writes choices into what is installed, also that there are none: what was written there before goes.
func remember(objects []*unstructured.Unstructured, choices []byte) {
	if len(choices) == 0 {
		choices = []byte("{}")
	}
	for _, o := range objects {
		if o.GetKind() == "APIService" {
			o.SetAnnotations(map[string]string{manifest.ChoicesAt: string(choices)})
		}
	}
}

// sameIn are the earlier choices, in words, that are those of now.
func sameIn(before, now []byte) ([]string, error) {
	earlier, berr := manifest.Named(before)
	current, nerr := manifest.Named(now)
	return slices.DeleteFunc(earlier, func(word string) bool { return !slices.Contains(current, word) }),
		errors.Join(berr, nerr)
}
