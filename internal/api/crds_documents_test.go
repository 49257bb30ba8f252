// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"
)

// Discovery, plain and aggregated, and both OpenAPI documents have custom resources as they come and go, after the
// server's own.
func TestCustomResourceDocuments(t *testing.T) {
	e := define(t, adminConfig(t), widgets)
	c := client(t)
	aggregated, err := c.Discovery().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := discovery.NewDiscoveryClientForConfigOrDie(adminConfig(t)).WithLegacy().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	for how, list := range map[string]*metav1.APIGroupList{"aggregated": aggregated, "plain": plain} {
		i := slices.IndexFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == e.group })
		if i < 0 {
			t.Errorf("%s: no group %s", how, e.group)
			continue
		}
		if g := list.Groups[i]; g.PreferredVersion.Version != "v1" || len(g.Versions) != 2 {
			t.Errorf("%s: %+v", how, g)
		}
		last := slices.IndexFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == "apiextensions.k8s.io" })
		if last < 0 || last > i {
			t.Errorf("%s: the custom group comes before the server's own", how)
		}
	}
	resources, err := c.Discovery().ServerResourcesForGroupVersion(e.group + "/v1")
	if err != nil || strings.Join(resourcesOf([]*metav1.APIResourceList{resources}), " ") !=
		fmt.Sprintf("%[1]s/v1/widgets:wi %[1]s/v1/widgets/status: %[1]s/v1/widgets/scale:", e.group) {
		t.Errorf("resources: %v, %v", resources, err)
	}
	if out := kubectl(t, "", "explain", "widgets.spec.color", "--api-version", e.group+"/v1"); !strings.Contains(out,
		"How the widget looks.") || !strings.Contains(out, "red") {
		t.Errorf("explain:\n%s", out)
	}
	if out := kubectl(t, "", "explain", "crd.spec.versions"); !strings.Contains(out, "storage") {
		t.Errorf("explain of definitions:\n%s", out)
	}
	raw, err := c.Discovery().RESTClient().Get().AbsPath("/openapi/v2").SetHeader("Accept",
		"application/json").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"How the widget looks.", "/apis/" + e.group +
		"/v1/namespaces/{namespace}/widgets/{name}/scale", `"io.k8s.api.core.v1.Pod"`,
		`"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("OpenAPI v2 has no %s", want)
		}
	}
	testCustomKubectl(t, e)
}

// A definition that is Established is in every document from that moment on: many are made at once, and who sees the
// condition asks for a document at once.
func TestCustomResourcesAreInDocumentsAtOnce(t *testing.T) {
	c := client(t).Discovery().RESTClient()
	crds := extensionsOf(t, adminConfig(t)).ApiextensionsV1().CustomResourceDefinitions()
	documents := []struct{ path, as, want string }{
		{"/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", `"name":"%[1]s"`},
		{"/apis", "application/json", `"name":"%[1]s"`},
		{"/apis/%[1]s", "application/json", `"preferredVersion":{"groupVersion":"%[1]s/v1"`},
		{"/apis/%[1]s/v1", "application/json", `"name":"widgets"`},
		{"/apis/%[1]s/v1beta1", "application/json", `"name":"widgets"`},
		{"/openapi/v3", "application/json", `"apis/%[1]s/v1"`},
		{"/openapi/v3/apis/%[1]s/v1", "application/json", `/namespaces/{namespace}/widgets/{name}`},
		{"/openapi/v2", "application/json", `/apis/%[1]s/v1/namespaces/{namespace}/widgets/{name}`},
	}
	for i := range 4 * len(documents) {
		doc := documents[i%len(documents)]
		t.Run(fmt.Sprint(i, doc.path), func(t *testing.T) {
			t.Parallel()
			group := fmt.Sprintf("g%d.documents.example.com", i)
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(fmt.Appendf(nil, widgets, group), crd); err != nil {
				t.Fatal(err)
			}
			crd, err := crds.Create(t.Context(), crd, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = crds.Delete(context.WithoutCancel(t.Context()), crd.Name, metav1.DeleteOptions{})
			})
			extension{crds: extensionsOf(t, adminConfig(t))}.await(t, crd, apiextensionsv1.Established)
			text := func(format string) string { return strings.ReplaceAll(format, "%[1]s", group) }
			got, err := c.Get().AbsPath(text(doc.path)).SetHeader("Accept", doc.as).DoRaw(t.Context())
			if err != nil || !strings.Contains(string(got), text(doc.want)) {
				t.Errorf("%s as %s has no %s (%d bytes, %v)", text(doc.path), doc.as, text(doc.want), len(got), err)
			}
		})
	}
}

// testCustomKubectl uses a custom resource with kubectl's commands.
func testCustomKubectl(t *testing.T, e extension) {
	t.Helper()
	ns := namespace(t, client(t))
	manifest := func(replicas int) string {
		return fmt.Sprintf("{apiVersion: %s/v1, kind: Widget, metadata: {name: web}, spec: {color: red, replicas: %d}}",
			e.group, replicas)
	}
	for _, step := range []struct {
		manifest string
		args     string
		want     string
	}{
		{manifest(1), "apply", "created"},
		{manifest(1), "apply", "unchanged"},
		{manifest(2), "apply", "configured"},
		{manifest(2), "diff", ""},
		{manifest(2), "apply --server-side --force-conflicts", "serverside-applied"},
		{"", "get widget web -o jsonpath={.spec.replicas}", "2"},
		{"", "get gadgets -o name", "widget." + e.group + "/web"},
		{"", "get all", "widget." + e.group + "/web"},
		{"", "describe wi web", "Color:"},
		{"", "scale widget/web --replicas=3", "scaled"},
		{"", "wait widget/web --for=jsonpath={.spec.replicas}=3", "condition met"},
		{"", "label widget/web a=b", "labeled"},
		{"", "patch widget web --type=merge -p {\"spec\":{\"limit\":8}}", "patched"},
		{"", "delete widget web", "deleted"},
	} {
		if out := kubectl(t, step.manifest, append([]string{"-n", ns},
			strings.Fields(step.args)...)...); !strings.Contains(out, step.want) || step.want == "" && out != "" {
			t.Errorf("kubectl %s:\n%s\nwant %s", step.args, out, step.want)
		}
	}
}

// What nobody defined is not found, plainly.
func TestUnknownGroup(t *testing.T) {
	c := client(t)
	for _, path := range []string{"/apis/nobody.example.com", "/apis/nobody.example.com/v1",
		"/apis/nobody.example.com/v1/things", "/apis/nobody.example.com/v1/namespaces/default/things/x",
		"/api/v1/things", "/apis/events.k8s.io/v1/things"} {
		var code int
		if err := c.Discovery().RESTClient().Get().AbsPath(path).Do(t.Context()).StatusCode(&code).Error(); code != http.StatusNotFound {
			t.Errorf("%s: %d, %v", path, code, err)
		}
	}
}
