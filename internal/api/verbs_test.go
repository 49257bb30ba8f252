// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A dry run of every verb answers as the real one would and changes nothing.
func TestDryRunOfEveryVerb(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	pods, cms := c.CoreV1().Pods(ns), c.CoreV1().ConfigMaps(ns)
	createPod(t, c, ns, pod("p"))
	if _, err := cms.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := func() string {
		p, err := pods.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := cms.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for i := range p.Items {
			all = append(all, p.Items[i].Name+p.Items[i].ResourceVersion)
		}
		for i := range m.Items {
			all = append(all, m.Items[i].Name+m.Items[i].ResourceVersion)
		}
		return strings.Join(all, " ")
	}
	was := before()
	dry := []string{metav1.DryRunAll}
	const patch = `{"metadata":{"labels":{"a":"b"}}}`
	for verb, do := range map[string]func(context.Context) error{
		"create": func(ctx context.Context) error {
			_, err := pods.Create(ctx, pod("new"), metav1.CreateOptions{DryRun: dry})
			return err
		},
		"update": func(ctx context.Context) error {
			cm, err := cms.Get(ctx, "c", metav1.GetOptions{})
			if err != nil {
				return err
			}
			cm.Data = map[string]string{"a": "b"}
			_, err = cms.Update(ctx, cm, metav1.UpdateOptions{DryRun: dry})
			return err
		},
		"update status": func(ctx context.Context) error {
			p, err := pods.Get(ctx, "p", metav1.GetOptions{})
			if err != nil {
				return err
			}
			p.Status.Message = "x"
			_, err = pods.UpdateStatus(ctx, p, metav1.UpdateOptions{DryRun: dry})
			return err
		},
		"patch": func(ctx context.Context) error {
			_, err := pods.Patch(ctx, "p", types.StrategicMergePatchType, []byte(patch),
				metav1.PatchOptions{DryRun: dry})
			return err
		},
		"apply": func(ctx context.Context) error {
			_, err := pods.Patch(ctx, "p", types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"Pod",`+patch[1:]),
				metav1.PatchOptions{DryRun: dry, FieldManager: "m"})
			return err
		},
		"apply something new": func(ctx context.Context) error {
			_, err := cms.Patch(ctx, "new", types.ApplyPatchType,
				[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"}}`),
				metav1.PatchOptions{DryRun: dry, FieldManager: "m"})
			return err
		},
		"delete": func(ctx context.Context) error { return cms.Delete(ctx, "c", metav1.DeleteOptions{DryRun: dry}) },
		"delete a collection": func(ctx context.Context) error {
			return pods.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dry}, metav1.ListOptions{})
		},
		"bind": func(ctx context.Context) error {
			b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"},
				Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
			return pods.Bind(ctx, b, metav1.CreateOptions{DryRun: dry})
		},
		"evict": func(ctx context.Context) error {
			return pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p"},
				DeleteOptions: &metav1.DeleteOptions{DryRun: dry}})
		},
		"create a service": func(ctx context.Context) error {
			_, err := c.CoreV1().Services(ns).Create(ctx, service("dry"), metav1.CreateOptions{DryRun: dry})
			return err
		},
	} {
		t.Run(verb, func(t *testing.T) {
			if err := do(t.Context()); err != nil {
				t.Error(err)
			}
			if is := before(); is != was {
				t.Errorf("it changed something: %s, was %s", is, was)
			}
		})
	}
	if _,
		err := pods.Create(t.Context(), pod("x"),
		metav1.CreateOptions{DryRun: []string{"Some"}}); !apierrors.IsInvalid(err) {
		t.Errorf("an unknown kind of dry run: %v", err)
	}
}

// fieldValidation says what becomes of fields nobody knows and of fields given twice: refused, warned of, or dropped
// silently; on every way to write.
func TestFieldValidation(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	if _, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"dota":{},"data":{"a":"1"},"data":{"a":"2"}}`
	const one = "/api/v1/namespaces/%s/configmaps/c"
	for verb, do := range map[string]func(mode string, said *[]string) error{
		"create": func(mode string, said *[]string) error {
			return c.CoreV1().RESTClient().Post().AbsPath("/api/v1/namespaces/"+ns+"/configmaps").Param("dryRun",
				"All").Param("fieldValidation", mode).
				SetHeader("Content-Type",
					"application/json").WarningHandler(warningFunc(func(s string) { *said = append(*said, s) })).
				Body([]byte(strings.Replace(body, `"c"`, `"new"`, 1))).Do(t.Context()).Error()
		},
		"update": func(mode string, said *[]string) error {
			return c.CoreV1().RESTClient().Put().AbsPath(strings.Replace(one, "%s", ns, 1)).Param("fieldValidation",
				mode).
				SetHeader("Content-Type",
					"application/json").WarningHandler(warningFunc(func(s string) { *said = append(*said, s) })).
				Body([]byte(body)).Do(t.Context()).Error()
		},
		"merge patch": func(mode string, said *[]string) error {
			return c.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(strings.Replace(one, "%s", ns,
				1)).Param("fieldValidation", mode).
				WarningHandler(warningFunc(func(s string) {
					*said = append(*said, s)
				})).Body([]byte(body)).Do(t.Context()).Error()
		},
	} {
		for mode, want := range map[string]struct {
			refused  bool
			warnings bool
		}{"Strict": {refused: true}, "Warn": {warnings: true}, "Ignore": {}, "": {warnings: true}} {
			t.Run(verb+" "+mode, func(t *testing.T) {
				var said []string
				err := do(mode, &said)
				if want.refused != (err != nil) || want.refused &&
					(!apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err) ||
						!strings.Contains(err.Error(), `unknown field "dota"`) ||
						!strings.Contains(err.Error(), `duplicate field "data"`)) {
					t.Errorf("error %v", err)
				}
				if text := strings.Join(said, "; "); want.warnings != (len(said) > 0) ||
					want.warnings && (!strings.Contains(text, `unknown field "dota"`) ||
						!strings.Contains(text, `duplicate field "data"`)) {
					t.Errorf("warnings %q", said)
				}
			})
		}
	}
	_, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		metav1.CreateOptions{FieldValidation: "Perhaps"})
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		t.Errorf("an unknown mode: %v", err)
	}
}

// A collection is deleted by its selectors, and by nothing else.
func TestDeleteCollectionBySelectors(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	secrets := c.CoreV1().Secrets(ns)
	for name, kind := range map[string]corev1.SecretType{"a": "example.com/one", "b": "example.com/one",
		"c": "example.com/two"} {
		if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"n": name}}, Type: kind}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		options metav1.ListOptions
		left    string
	}{
		{metav1.ListOptions{LabelSelector: "n=nobody"}, "a b c"},
		{metav1.ListOptions{FieldSelector: "type=example.com/one", LabelSelector: "n!=a"}, "a c"},
		{metav1.ListOptions{FieldSelector: "type=example.com/two"}, "a"},
		{metav1.ListOptions{}, ""},
	} {
		if err := secrets.DeleteCollection(t.Context(), metav1.DeleteOptions{}, row.options); err != nil {
			t.Fatal(err)
		}
		list, err := secrets.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for i := range list.Items {
			left = append(left, list.Items[i].Name)
		}
		if got := strings.Join(left, " "); got != row.left {
			t.Errorf("after %+v: %s, want %s", row.options, got, row.left)
		}
	}
}
