// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/api/imagepolicy"
)

func service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": name},
			Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// samples is an object of every kind the server serves, by resource.
func samples(ns string) map[schema.GroupVersionResource]runtime.Object {
	core := corev1.SchemeGroupVersion
	m := metav1.ObjectMeta{Name: "sample-" + ns}
	p := pod(m.Name)
	svc := service("sample")
	all := map[schema.GroupVersionResource]runtime.Object{
		core.WithResource("namespaces"): &corev1.Namespace{ObjectMeta: m},
		core.WithResource("nodes"):      &corev1.Node{ObjectMeta: m},
		core.WithResource("pods"):       p,
		core.WithResource("podtemplates"): &corev1.PodTemplate{ObjectMeta: m,
			Template: corev1.PodTemplateSpec{Spec: p.Spec}},
		core.WithResource("events"): &corev1.Event{ObjectMeta: m,
			InvolvedObject: corev1.ObjectReference{Namespace: ns, Name: "x", Kind: "Pod"}},
		core.WithResource("configmaps"):      &corev1.ConfigMap{ObjectMeta: m, Data: map[string]string{"a": "b"}},
		core.WithResource("secrets"):         &corev1.Secret{ObjectMeta: m, StringData: map[string]string{"a": "b"}},
		core.WithResource("serviceaccounts"): &corev1.ServiceAccount{ObjectMeta: m},
		core.WithResource("services"):        svc,
		core.WithResource("endpoints"):       &corev1.Endpoints{ObjectMeta: m},
		core.WithResource("limitranges"): &corev1.LimitRange{ObjectMeta: m,
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
				{Type: corev1.LimitTypeContainer,
					Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}},
		core.WithResource("resourcequotas"): &corev1.ResourceQuota{ObjectMeta: m, Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("5")}}},
		certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"): &certificatesv1.CertificateSigningRequest{ObjectMeta: m, Spec: sampleRequest()},
		flowcontrolv1.SchemeGroupVersion.WithResource("flowschemas"): &flowcontrolv1.FlowSchema{ObjectMeta: m,
			Spec: flowcontrolv1.FlowSchemaSpec{
				PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "global-default"}}},
		flowcontrolv1.SchemeGroupVersion.WithResource("prioritylevelconfigurations"): &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: m, Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}}}},
		schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"): &schedulingv1.PriorityClass{ObjectMeta: m,
			Value: 7},
		nodev1.SchemeGroupVersion.WithResource("runtimeclasses"): &nodev1.RuntimeClass{ObjectMeta: m,
			Handler: "other"},
		imagepolicy.GroupVersion().WithResource(imagepolicy.Resource): &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "policy.wherry.dev/v1", "kind": "ImagePolicy", "metadata": map[string]any{"name": m.Name},
			"spec": map[string]any{"namespaces": []any{"sample-" + ns}, "deny": []any{"evil.example/**"}}}},
		rbacv1.SchemeGroupVersion.WithResource("roles"): &rbacv1.Role{ObjectMeta: m, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}},
		rbacv1.SchemeGroupVersion.WithResource("clusterroles"): &rbacv1.ClusterRole{ObjectMeta: m,
			Rules: []rbacv1.PolicyRule{
				{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}}},
		rbacv1.SchemeGroupVersion.WithResource("rolebindings"): &rbacv1.RoleBinding{ObjectMeta: m,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: ns}}},
		rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"): &rbacv1.ClusterRoleBinding{ObjectMeta: m,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}},
		discoveryv1.SchemeGroupVersion.WithResource("endpointslices"): &discoveryv1.EndpointSlice{ObjectMeta: m,
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.1.2.3"}}}},
		admissionGV.WithResource("mutatingwebhookconfigurations"): mutatingConfig(m.Name,
			sampleHook("https://127.0.0.1:1")),
		admissionGV.WithResource("validatingwebhookconfigurations"): validatingConfig(m.Name,
			sampleHook("https://127.0.0.1:1")),
		admissionGV.WithResource("validatingadmissionpolicies"): validatingPolicy(m.Name, sampleRule(),
			"object != null"),
		admissionGV.WithResource("validatingadmissionpolicybindings"): bindValidating(m.Name, "none"),
		admissionGV.WithResource("mutatingadmissionpolicies"): mutatingPolicy(m.Name, sampleRule(),
			addLabel("a", "b")),
		admissionGV.WithResource("mutatingadmissionpolicybindings"): bindMutating(m.Name, "none"),
		coordinationv1.SchemeGroupVersion.WithResource("leases"): &coordinationv1.Lease{ObjectMeta: m,
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To("me"), LeaseDurationSeconds: ptr.To[int32](40)}},
		eventsv1.SchemeGroupVersion.WithResource("events"): &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: m.Name +
			"-new"},
			Regarding: corev1.ObjectReference{Namespace: ns, Name: "x", Kind: "Pod"}, Reason: "R", Action: "A",
			Note: "n", Type: "Normal", EventTime: metav1.NowMicro(), ReportingController: "test",
			ReportingInstance: "test-1"},
	}
	maps.Copy(all, workloadSamples(m))
	maps.Copy(all, volumeSamples(m))
	maps.Copy(all, networkSamples(m))
	maps.Copy(all, certificateSamples(m))
	maps.Copy(all, deviceSamples(m))
	maps.Copy(all, registrationSamples())
	return all
}

func toUnstructured(t *testing.T, obj runtime.Object) *unstructured.Unstructured {
	t.Helper()
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u
	}
	gvks, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvks[0])
	return u
}

// Every served kind can be created, read, listed, watched, updated, patched and deleted.
func TestEveryKind(t *testing.T) {
	ns := namespace(t, client(t))
	dyn := dynamicClient(t)
	lists, err := client(t).Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	sample := samples(ns)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			gvr := gv.WithResource(r.Name)
			if !slices.Contains(r.Verbs, "create") || !slices.Contains(r.Verbs, "get") {
				continue // records, and reviews, which are not kept: both have tests of their own
			}
			if gv.Group == apiextensionsv1.GroupName || strings.Contains(gv.Group, "example") {
				continue // TestCustomResources has their lives
			}
			t.Run(gvr.Group+"/"+r.Name, func(t *testing.T) {
				obj, ok := sample[gvr]
				if !ok {
					t.Fatalf("no sample of %s: add one", gvr)
				}
				var ri dynamic.ResourceInterface = dyn.Resource(gvr)
				if r.Namespaced {
					ri = dyn.Resource(gvr).Namespace(ns)
				}
				lifeOfAnObject(t, ri, toUnstructured(t, obj), r)
			})
		}
	}
}

// judgedFlow waits for the server's word about a flow schema.
func judgedFlow(t *testing.T, c kubernetes.Interface, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := c.FlowcontrolV1().FlowSchemas().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if f, ok := e.Object.(*flowcontrolv1.FlowSchema); ok && len(f.Status.Conditions) > 0 {
			return
		}
	}
	t.Fatal("the server said nothing about the flow schema")
}

func lifeOfAnObject(t *testing.T, ri dynamic.ResourceInterface, obj *unstructured.Unstructured, r metav1.APIResource) {
	ctx := t.Context()
	made, err := ri.Create(ctx, obj, metav1.CreateOptions{FieldValidation: "Strict"})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	if made.GetUID() == "" || made.GetResourceVersion() == "" || made.GetCreationTimestamp() == (metav1.Time{}) {
		t.Errorf("create left system fields empty: %v", made.Object["metadata"])
	}
	if _, err := ri.Create(ctx, obj, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second create: %v", err)
	}
	if r.Kind == "ValidatingAdmissionPolicy" { // its expressions are checked, which writes its status
		checkedPolicy(t, client(t), obj.GetName(), 1)
	}
	if r.Kind == "FlowSchema" { // the server says in its status whether its priority level is there
		judgedFlow(t, client(t), obj.GetName())
	}
	got, err := ri.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	if got.GetKind() != r.Kind {
		t.Errorf("get: kind %q, want %q", got.GetKind(), r.Kind)
	}
	all, err := ri.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + obj.GetName()})
	if err != nil || len(all.Items) != 1 || all.GetKind() != r.Kind+"List" {
		t.Errorf("list: %v, %v", all, err)
	}
	w, err := ri.Watch(ctx, metav1.ListOptions{ResourceVersion: got.GetResourceVersion()})
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	defer w.Stop()

	got.SetLabels(map[string]string{"step": "update"})
	updated, err := ri.Update(ctx, got, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("update: %v", err)
	}
	ev := <-w.ResultChan()
	if m, err := meta.Accessor(ev.Object); err != nil || ev.Type != "MODIFIED" ||
		m.GetResourceVersion() != updated.GetResourceVersion() {
		t.Errorf("watch: %s %v, want MODIFIED at %s", ev.Type, ev.Object, updated.GetResourceVersion())
	}
	if _, err := ri.Update(ctx, got, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: %v", err)
	}
	for step, kind := range map[string]types.PatchType{"merge": types.MergePatchType,
		"strategic": types.StrategicMergePatchType} {
		patched, err := ri.Patch(ctx, obj.GetName(), kind, []byte(`{"metadata":{"labels":{"step":"`+step+`"}}}`),
			metav1.PatchOptions{})
		if err != nil || patched.GetLabels()["step"] != step {
			t.Errorf("%s: %v, %v", kind, patched, err)
		}
	}
	if err := ri.Delete(ctx, obj.GetName(),
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}); !apierrors.IsConflict(err) {
		t.Errorf("delete of another uid: %v", err)
	}
	if err := ri.Delete(ctx, obj.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete: %v", err)
	}
	noLongerInUse(t, ri, obj.GetName(), r)
	if r.Kind != "Namespace" { // a namespace waits for its finalizer
		if _, err := ri.Get(ctx, obj.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get after delete: %v", err)
		}
	}
	if hasVerb(r, "deletecollection") {
		if _, err := ri.Create(ctx, obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := ri.DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{FieldSelector: "metadata.name=" + obj.GetName()}); err != nil {
			t.Errorf("delete collection: %v", err)
		}
		noLongerInUse(t, ri, obj.GetName(), r)
		if _, err := ri.Get(ctx, obj.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("get after delete collection: %v", err)
		}
	}
}

// noLongerInUse does what controllers do when nobody uses a volume or a claim that is being deleted, and when what a
// workload owned is set free, which is what a deletion of these means by default.
func noLongerInUse(t *testing.T, ri dynamic.ResourceInterface, name string, r metav1.APIResource) {
	t.Helper()
	if r.Name == "servicecidrs" { // the server lets it go itself
		awaitGone(t, ri, name)
	}
	kept := []string{"persistentvolumes", "persistentvolumeclaims", "jobs", "replicationcontrollers"}
	if !slices.Contains(kept, r.Name) {
		return
	}
	if _, err := ri.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Errorf("take the finalizer away: %v", err)
	}
}

func hasVerb(r metav1.APIResource, verb string) bool {
	for _, v := range r.Verbs {
		if v == verb {
			return true
		}
	}
	return false
}

// Lists come in pages of one state, and items do not repeat kind and version.
func TestPages(t *testing.T) {
	c := client(t)
	ns := namespace(t, c)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if _, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	options := metav1.ListOptions{Limit: 2}
	for {
		page, err := c.CoreV1().ConfigMaps(ns).List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 && ptr.Deref(page.RemainingItemCount, 0) != 3 {
			t.Errorf("remaining after the first page: %v", page.RemainingItemCount)
		}
		for _, item := range page.Items {
			names = append(names, item.Name)
		}
		if page.Continue == "" {
			break
		}
		options.Continue = page.Continue
		c.CoreV1().ConfigMaps(ns).Delete(t.Context(), "e", metav1.DeleteOptions{})
	}
	if got := strings.Join(names, ""); got != "abcde" {
		t.Errorf("pages gave %q", got)
	}
	raw, err := c.CoreV1().RESTClient().Get().Namespace(ns).Resource("configmaps").SetHeader("Accept",
		"application/json").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	if list.Items[0]["kind"] != nil {
		t.Errorf("items show their kind: %v", list.Items[0])
	}
}
