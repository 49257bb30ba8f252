// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
)

// base is a pod with one container in a world with one ConfigMap, one Secret and three Services.
func base() Input {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u1",
			Labels: map[string]string{"app": "web", "tier": "a\"b"}, Annotations: map[string]string{"note": "hello"}},
		Spec: corev1.PodSpec{NodeName: "n1", ServiceAccountName: "robot", EnableServiceLinks: ptr.To(false),
			Containers: []corev1.Container{{Name: "main"}}},
	}
	return Input{
		Pod: pod, Container: &pod.Spec.Containers[0],
		PodIPs: []string{"10.1.0.5", "fd00::5"}, HostIPs: []string{"192.0.2.1", "2001:db8::1"},
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi")},
		ConfigMap: func(name string) (*corev1.ConfigMap, error) {
			if name == "broken" {
				return nil, errors.New("API server is away")
			}
			if name != "settings" {
				return nil, nil
			}
			return &corev1.ConfigMap{Data: map[string]string{"level": "debug", "a.b-c": "odd", "ref": "$(X)"}}, nil
		},
		Secret: func(name string) (*corev1.Secret, error) {
			if name != "keys" {
				return nil, apierrors.NewNotFound(corev1.Resource("secret"), name)
			}
			return &corev1.Secret{Data: map[string][]byte{"token": []byte("s3cret")}}, nil
		},
		Services: []*corev1.Service{
			service("default", "kubernetes", "10.96.0.1", corev1.ServicePort{Name: "https", Port: 443}),
			service("shop", "cart-db", "10.96.0.7", corev1.ServicePort{Port: 5432}, corev1.ServicePort{Name: "dns-udp", Port: 53, Protocol: "UDP"}),
			service("shop", "headless", "None", corev1.ServicePort{Port: 1}),
			service("other", "unseen", "10.96.0.9", corev1.ServicePort{Port: 1}),
		},
	}
}

func service(ns, name, ip string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: ports}}
}

func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func res(name, what, divisor string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: what, Divisor: resource.MustParse(divisor)}}}
}

func key(name, from, key string, optional bool) corev1.EnvVar {
	ref := corev1.LocalObjectReference{Name: from}
	if from == "keys" || from == "nosecret" {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref, Key: key, Optional: &optional}}}
	}
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref, Key: key, Optional: &optional}}}
}

func fromConfigMap(prefix, name string, optional bool) corev1.EnvFromSource {
	return corev1.EnvFromSource{Prefix: prefix, ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: &optional}}
}

func fromSecret(prefix, name string, optional bool) corev1.EnvFromSource {
	return corev1.EnvFromSource{Prefix: prefix, SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: &optional}}
}

// withoutMaster drops the variables of the kubernetes service, which every pod has.
func withoutMaster(kvs []*runtimeapi.KeyValue) []string {
	var out []string
	for _, kv := range kvs {
		if !strings.HasPrefix(kv.Key, "KUBERNETES_") {
			out = append(out, kv.Key+"="+string(kv.Value))
		}
	}
	return out
}

// TestBuild proves PL-06 form by form.
func TestBuild(t *testing.T) {
	limits := func(in *Input) {
		in.Container.Resources = corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi")},
			Requests: corev1.ResourceList{"cpu": resource.MustParse("250m")},
		}
	}
	for name, c := range map[string]struct {
		edit func(*Input)
		env  []corev1.EnvVar
		from []corev1.EnvFromSource
		want []string
	}{
		"literals in order, the last of a name wins": {
			env:  []corev1.EnvVar{{Name: "B", Value: "1"}, {Name: "A", Value: ""}, {Name: "B", Value: "2"}},
			want: []string{"A=", "B=2"}},
		"expansion sees earlier ones only": {
			env:  []corev1.EnvVar{{Name: "X", Value: "x"}, {Name: "Y", Value: "$(X)-$(Z)-$$(X)-$X"}, {Name: "Z", Value: "$(Y)"}},
			want: []string{"X=x", "Y=x-$(Z)-$(X)-$X", "Z=x-$(Z)-$(X)-$X"}},
		"expansion sees the value a name had before": {
			env:  []corev1.EnvVar{{Name: "P", Value: "/bin"}, {Name: "P", Value: "$(P):/usr/bin"}},
			want: []string{"P=/bin:/usr/bin"}},
		"fields": {
			env: []corev1.EnvVar{field("N", "metadata.name"), field("NS", "metadata.namespace"), field("U", "metadata.uid"),
				field("L", "metadata.labels['app']"), field("AN", "metadata.annotations['note']"), field("NONE", "metadata.labels['no']"),
				field("NODE", "spec.nodeName"), field("SA", "spec.serviceAccountName"), field("H", "status.hostIP"), field("HS", "status.hostIPs"),
				field("P", "status.podIP"), field("PS", "status.podIPs"), field("ALL", "metadata.labels")},
			want: []string{"N=web", "NS=shop", "U=u1", "L=web", "AN=hello", "NONE=", "NODE=n1", "SA=robot", "H=192.0.2.1",
				"HS=192.0.2.1,2001:db8::1", "P=10.1.0.5", "PS=10.1.0.5,fd00::5", "ALL=app=\"web\"\ntier=\"a\\\"b\""}},
		"resources, rounded up": {
			edit: limits,
			env: []corev1.EnvVar{res("A", "limits.cpu", "0"), res("B", "limits.cpu", "1m"), res("C", "limits.memory", "1Mi"), res("D", "requests.cpu", "1"),
				res("E", "requests.memory", "0"), res("F", "limits.hugepages-2Mi", "0"), res("G", "limits.memory", "1G")},
			want: []string{"A=2", "B=1500", "C=1024", "D=1", "E=0", "F=0", "G=2"}},
		"resources without a limit are the node's": {
			env:  []corev1.EnvVar{res("A", "limits.cpu", "0"), res("B", "limits.memory", "1Gi"), res("C", "limits.ephemeral-storage", "0")},
			want: []string{"A=4", "B=8", "C=0"}},
		"resources without a limit are the pod's own": {
			edit: func(in *Input) {
				in.Pod.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("3")}}
			},
			env:  []corev1.EnvVar{res("A", "limits.cpu", "0")},
			want: []string{"A=3"}},
		"keys of objects are not expanded": {
			env: []corev1.EnvVar{{Name: "X", Value: "x"}, key("L", "settings", "level", false), key("T", "keys", "token", false),
				key("R", "settings", "ref", false), {Name: "RR", Value: "$(R)"}},
			want: []string{"X=x", "L=debug", "T=s3cret", "R=$(X)", "RR=$(X)"}},
		"optional references leave the variable out": {
			env:  []corev1.EnvVar{key("A", "settings", "no", true), key("B", "none", "no", true), key("C", "keys", "no", true), key("D", "nosecret", "no", true)},
			want: nil},
		"an optional one that leads nowhere keeps the earlier value": {
			env:  []corev1.EnvVar{{Name: "A", Value: "1"}, key("A", "none", "no", true), {Name: "B", Value: "2"}},
			want: []string{"A=1", "B=2"}},
		"envFrom with prefix, sorted, before env and overridden by it": {
			from: []corev1.EnvFromSource{fromConfigMap("C_", "settings", false), fromSecret("", "keys", false), fromConfigMap("", "none", true), fromSecret("", "none", true)},
			env:  []corev1.EnvVar{{Name: "Z", Value: "$(C_level)"}, {Name: "token", Value: "own"}},
			want: []string{"C_a.b-c=odd", "C_level=debug", "C_ref=$(X)", "Z=debug", "token=own"}},
		"a later envFrom overrides an earlier one": {
			edit: func(in *Input) {
				in.Secret = func(string) (*corev1.Secret, error) {
					return &corev1.Secret{Data: map[string][]byte{"level": []byte("later")}}, nil
				}
			},
			from: []corev1.EnvFromSource{fromConfigMap("", "settings", false), fromSecret("", "keys", false)},
			want: []string{"a.b-c=odd", "level=later", "ref=$(X)"}},
		"service links": {
			edit: func(in *Input) { in.Pod.Spec.EnableServiceLinks = nil },
			env:  []corev1.EnvVar{{Name: "DB", Value: "$(CART_DB_SERVICE_HOST)"}, {Name: "CART_DB_PORT", Value: "mine"}},
			want: []string{"CART_DB_PORT_53_UDP=udp://10.96.0.7:53", "CART_DB_PORT_53_UDP_ADDR=10.96.0.7", "CART_DB_PORT_53_UDP_PORT=53", "CART_DB_PORT_53_UDP_PROTO=udp",
				"CART_DB_PORT_5432_TCP=tcp://10.96.0.7:5432", "CART_DB_PORT_5432_TCP_ADDR=10.96.0.7", "CART_DB_PORT_5432_TCP_PORT=5432", "CART_DB_PORT_5432_TCP_PROTO=tcp",
				"CART_DB_SERVICE_HOST=10.96.0.7", "CART_DB_SERVICE_PORT=5432", "CART_DB_SERVICE_PORT_DNS_UDP=53", "DB=10.96.0.7", "CART_DB_PORT=mine"}},
	} {
		t.Run("PL-06 "+name, func(t *testing.T) {
			in := base()
			in.Container.Env, in.Container.EnvFrom = c.env, c.from
			if c.edit != nil {
				c.edit(&in)
			}
			got, err := Build(in)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(withoutMaster(got), c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(withoutMaster(got), "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestMasterService proves PL-06: the API server's service is there even without service links, and an own one hides it.
func TestMasterService(t *testing.T) {
	in := base()
	host := func() string {
		kvs, err := Build(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range kvs {
			if kv.Key == "KUBERNETES_SERVICE_HOST" {
				return string(kv.Value)
			}
		}
		return ""
	}
	if got := host(); got != "10.96.0.1" {
		t.Errorf("without links: KUBERNETES_SERVICE_HOST=%q", got)
	}
	in.Services = append([]*corev1.Service{service("shop", "kubernetes", "10.96.9.9", corev1.ServicePort{Port: 1})}, in.Services...)
	if got := host(); got != "10.96.0.1" {
		t.Errorf("without links an own one: KUBERNETES_SERVICE_HOST=%q", got)
	}
	in.Pod.Spec.EnableServiceLinks = nil
	if got := host(); got != "10.96.9.9" {
		t.Errorf("with links: KUBERNETES_SERVICE_HOST=%q", got)
	}
}

// TestBuildErrors proves PL-06 and PL-15: the words name the object, the key, the variable and the container.
func TestBuildErrors(t *testing.T) {
	for name, c := range map[string]struct {
		env      []corev1.EnvVar
		from     []corev1.EnvFromSource
		want     string
		notFound bool
	}{
		"no configmap":      {env: []corev1.EnvVar{key("A", "none", "k", false)}, want: `configmap "none" not found (env A of container main)`, notFound: true},
		"no secret":         {env: []corev1.EnvVar{key("A", "nosecret", "k", false)}, want: `secret "nosecret" not found (env A of container main)`, notFound: true},
		"no key":            {env: []corev1.EnvVar{key("A", "settings", "k", false)}, want: `couldn't find key k in ConfigMap shop/settings (env A of container main)`},
		"no secret key":     {env: []corev1.EnvVar{key("A", "keys", "k", false)}, want: `couldn't find key k in Secret shop/keys (env A of container main)`},
		"envFrom":           {from: []corev1.EnvFromSource{fromConfigMap("", "none", false)}, want: `configmap "none" not found (envFrom[0] of container main)`, notFound: true},
		"optional, unknown": {env: []corev1.EnvVar{key("A", "broken", "k", true)}, want: `API server is away (env A of container main)`},
		"field":             {env: []corev1.EnvVar{field("A", "spec.nope")}, want: `unsupported fieldPath "spec.nope" (env A of container main)`},
		"subscript":         {env: []corev1.EnvVar{field("A", "spec['x']")}, want: `unsupported fieldPath "spec['x']": only metadata.labels and metadata.annotations take a ['key'] (env A of container main)`},
		"resource":          {env: []corev1.EnvVar{res("A", "limits.gpu", "0")}, want: `unsupported resourceFieldRef "limits.gpu": known are cpu, memory, ephemeral-storage and hugepages-* (env A of container main)`},
	} {
		t.Run("PL-06 PL-15 "+name, func(t *testing.T) {
			in := base()
			in.Container.Env, in.Container.EnvFrom = c.env, c.from
			_, err := Build(in)
			if err == nil || err.Error() != c.want {
				t.Fatalf("got  %v\nwant %s", err, c.want)
			}
			var e *Error
			if !errors.As(err, &e) || e.Reason() != "CreateContainerConfigError" || apierrors.IsNotFound(e.Err) != c.notFound {
				t.Errorf("%#v", err)
			}
		})
	}
}

// TestSkipped proves PL-06: names that cannot be variables are left out and reported.
func TestSkipped(t *testing.T) {
	in := base()
	in.Container.EnvFrom = []corev1.EnvFromSource{fromConfigMap("a=", "settings", false)}
	var got []string
	in.Skipped = func(source string, names []string) { got = append(got, fmt.Sprint(source, names)) }
	kvs, err := Build(in)
	if err != nil || len(withoutMaster(kvs)) != 0 {
		t.Fatal(kvs, err)
	}
	if want := []string{"configmap settings[a=a.b-c a=level a=ref]"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestReferences proves PL-06: what has to be known beforehand.
func TestReferences(t *testing.T) {
	c := &corev1.Container{
		Env:     []corev1.EnvVar{key("A", "z", "k", false), key("B", "a", "k", true), key("C", "keys", "k", true), {Name: "D"}},
		EnvFrom: []corev1.EnvFromSource{fromConfigMap("", "z", false), fromSecret("", "more", false)},
	}
	cms, secrets := References(c)
	if !reflect.DeepEqual(cms, []string{"a", "z"}) || !reflect.DeepEqual(secrets, []string{"keys", "more"}) {
		t.Error(cms, secrets)
	}
}
