// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Input is everything the environment of one container depends on.
type Input struct {
	Pod       *corev1.Pod
	Container *corev1.Container
	// PodIPs and HostIPs, the primary address first; PodIPs of a pod on the host's network are the host's.
	PodIPs, HostIPs []string
	// Allocatable of the node: what resourceFieldRef shows for a limit that is not set.
	Allocatable corev1.ResourceList
	// ConfigMap and Secret give the named object of the pod's namespace. One that does not exist is nil, or an error
	// that apierrors.IsNotFound knows; any other error makes the container wait even when the reference is optional,
	// since it is not known whether the object exists. They must not block and must answer the same for the whole of
	// one Build.
	ConfigMap func(name string) (*corev1.ConfigMap, error)
	Secret    func(name string) (*corev1.Secret, error)
	// File reads a file of an emptyDir of the pod; one that does not exist is fs.ErrNotExist.
	File func(volume, path string) ([]byte, error)
	// Services of all namespaces, or at least of the pod's and the default one (see NeedsServices).
	Services []*corev1.Service
	// Skipped, if set, is called with names from envFrom that no variable can have.
	Skipped func(source string, names []string)
}

// Error says why a container's environment cannot be made: the status reason is CreateContainerConfigError.
type Error struct {
	Container string // the container's name
	Where     string // "env LEVEL", "envFrom[2]"
	Err       error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%v (%s of container %s)", e.Err, e.Where, e.Container)
}

// Unwrap gives the cause; apierrors.IsNotFound holds for a missing object.
func (e *Error) Unwrap() error { return e.Err }

// Reason is the waiting reason of the container: CreateContainerConfigError.
func (e *Error) Reason() string { return "CreateContainerConfigError" }

// Build gives the container's variables (PL-06), each name once: service links first, then what only envFrom gives,
// both sorted, then env in the order of the spec. env overrides envFrom, a later entry overrides an earlier one, all
// override service links. Every error is an *Error.
func Build(in Input) ([]*runtimeapi.KeyValue, error) {
	links := serviceVars(in.Pod, in.Services)
	vars := map[string]string{}
	for i := range in.Container.EnvFrom {
		if err := in.from(&in.Container.EnvFrom[i], vars); err != nil {
			return nil, in.fail(fmt.Sprintf("envFrom[%d]", i), err)
		}
	}
	bulk := slices.Sorted(maps.Keys(vars))

	// A reference sees what was defined before it, then the service links.
	lookup := func(name string) (string, bool) {
		if v, ok := vars[name]; ok {
			return v, true
		}
		v, ok := links[name]
		return v, ok
	}
	var order []string
	for i := range in.Container.Env {
		e := &in.Container.Env[i]
		value, ok, err := in.value(e, lookup)
		if err != nil {
			return nil, in.fail("env "+e.Name, err)
		}
		if ok {
			vars[e.Name] = value
			order = append(order, e.Name)
		}
	}
	return in.list(links, bulk, order, vars), nil
}

// list puts the names in order, each at its last place among env.
func (in *Input) list(links map[string]string, bulk, order []string, vars map[string]string) []*runtimeapi.KeyValue {
	var out []*runtimeapi.KeyValue
	add := func(k, v string) { out = append(out, &runtimeapi.KeyValue{Key: k, Value: []byte(v)}) }
	for _, k := range slices.Sorted(maps.Keys(links)) {
		if _, taken := vars[k]; !taken {
			add(k, links[k])
		}
	}
	last := make(map[string]int, len(order))
	for i, k := range order {
		last[k] = i
	}
	for _, k := range bulk {
		if _, again := last[k]; !again {
			add(k, vars[k])
		}
	}
	for i, k := range order {
		if last[k] == i {
			add(k, vars[k])
		}
	}
	return out
}

func (in *Input) fail(where string, err error) error {
	return &Error{Container: in.Container.Name, Where: where, Err: err}
}

// from puts all keys of one envFrom source into vars.
func (in *Input) from(src *corev1.EnvFromSource, vars map[string]string) error {
	var source string
	pairs := map[string]string{}
	switch {
	case src.ConfigMapRef != nil:
		source = "configmap " + src.ConfigMapRef.Name
		cm, err := in.configMap(src.ConfigMapRef.Name, isTrue(src.ConfigMapRef.Optional))
		if cm == nil || err != nil {
			return err
		}
		maps.Copy(pairs, cm.Data)
	case src.SecretRef != nil:
		source = "secret " + src.SecretRef.Name
		s, err := in.secret(src.SecretRef.Name, isTrue(src.SecretRef.Optional))
		if s == nil || err != nil {
			return err
		}
		for k, v := range s.Data {
			pairs[k] = string(v)
		}
	}
	var invalid []string
	for k, v := range pairs {
		name := src.Prefix + k
		if len(validation.IsRelaxedEnvVarName(name)) > 0 {
			invalid = append(invalid, name)
			continue
		}
		vars[name] = v
	}
	if len(invalid) > 0 && in.Skipped != nil {
		slices.Sort(invalid)
		in.Skipped(source, invalid)
	}
	return nil
}

// value of one env entry; not ok means that an optional reference leads nowhere and the variable is not set at all.
func (in *Input) value(e *corev1.EnvVar, lookup func(string) (string, bool)) (value string, ok bool, err error) {
	if e.Value != "" || e.ValueFrom == nil {
		return expand(e.Value, lookup), true, nil
	}
	switch from := e.ValueFrom; {
	case from.FieldRef != nil:
		value, err = in.field(from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err = ResourceValue(in.Pod, in.Container.Name, from.ResourceFieldRef, in.Allocatable)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		return in.configMapKey(from.ConfigMapKeyRef)
	case from.SecretKeyRef != nil:
		return in.secretKey(from.SecretKeyRef)
	case from.FileKeyRef != nil:
		return in.fileKey(from.FileKeyRef)
	}
	return "", false, fmt.Errorf("valueFrom names no source")
}

func (in *Input) field(path string) (string, error) {
	first := func(ips []string) string {
		if len(ips) == 0 {
			return ""
		}
		return ips[0]
	}
	switch path {
	case "status.podIP":
		return first(in.PodIPs), nil
	case "status.podIPs":
		return strings.Join(in.PodIPs, ","), nil
	case "status.hostIP":
		return first(in.HostIPs), nil
	case "status.hostIPs":
		return strings.Join(in.HostIPs, ","), nil
	}
	return FieldValue(in.Pod, path)
}

func (in *Input) configMapKey(ref *corev1.ConfigMapKeySelector) (string, bool, error) {
	cm, err := in.configMap(ref.Name, isTrue(ref.Optional))
	if cm == nil || err != nil {
		return "", false, err
	}
	v, ok := cm.Data[ref.Key]
	if !ok && !isTrue(ref.Optional) {
		return "", false, fmt.Errorf("couldn't find key %v in ConfigMap %v/%v", ref.Key, in.Pod.Namespace, ref.Name)
	}
	return v, ok, nil
}

func (in *Input) secretKey(ref *corev1.SecretKeySelector) (string, bool, error) {
	s, err := in.secret(ref.Name, isTrue(ref.Optional))
	if s == nil || err != nil {
		return "", false, err
	}
	v, ok := s.Data[ref.Key]
	if !ok && !isTrue(ref.Optional) {
		return "", false, fmt.Errorf("couldn't find key %v in Secret %v/%v", ref.Key, in.Pod.Namespace, ref.Name)
	}
	return string(v), ok, nil
}

func (in *Input) configMap(name string, optional bool) (*corev1.ConfigMap, error) {
	return find("configmap", name, optional, in.ConfigMap)
}

func (in *Input) secret(name string, optional bool) (*corev1.Secret, error) {
	return find("secret", name, optional, in.Secret)
}

// find gives nil without an error for an optional object that does not exist.
func find[T any](kind, name string, optional bool, get func(string) (*T, error)) (*T, error) {
	if get == nil {
		return nil, fmt.Errorf("cannot look up %s %q", kind, name)
	}
	obj, err := get(name)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return nil, err
	case err == nil && obj != nil:
		return obj, nil
	case optional:
		return nil, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource(kind), name)
}

func isTrue(b *bool) bool { return b != nil && *b }
