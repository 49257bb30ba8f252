// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/manifest"
)

// fieldManager is the owner of what a run applies.
const fieldManager = "wherry-run"

// created is what a run made and so may remove, and the workloads that were there before and have been updated.
type created struct {
	pods      []*corev1.Pod
	workloads []*workload
	others    []other
	spared    []string // what was there before and stays, until that has been shown
}

type other struct {
	name, kind string
	uid        types.UID
	verbs      verbs
}

// rehearse lets the server judge all objects, new and updated ones, without storing one, so that a bad one leaves
// nothing half done. Objects of a namespace that the manifest itself makes cannot be judged before it is there.
func (r *Runner) rehearse(ctx context.Context, objects []manifest.Object) error {
	making := map[string]bool{}
	for _, o := range objects {
		if n, ok := o.Object.(*corev1.Namespace); ok {
			making[n.Name] = true
		}
	}
	var errs []error
	for _, o := range objects {
		m, ns := r.defaultNamespace(o.Object)
		if making[ns] {
			continue
		}
		v, _ := verbsFor(r.Client, ns, o.Object)
		there, err := isThere(ctx, v, o, m)
		switch {
		case err != nil:
		case there:
			_, err = apply(ctx, o, m, v, metav1.DryRunAll)
		default:
			_, err = v.create(ctx, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll},
				FieldValidation: metav1.FieldValidationStrict})
		}
		if err != nil && !quicker(err, o, m) {
			errs = append(errs, refused(o, err))
		}
	}
	return errors.Join(errs...)
}

// isThere reports whether there is an object already that is to be updated. One that runs once is not.
func isThere(ctx context.Context, v verbs, o manifest.Object, m metav1.Object) (bool, error) {
	if runsOnce(o.Object) || m.GetName() == "" {
		return false, nil
	}
	return v.exists(ctx, m.GetName())
}

// quicker reports that somebody, such as another run of the same manifest, has just made what is not yet there to be
// updated.
func quicker(err error, o manifest.Object, m metav1.Object) bool {
	return apierrors.IsAlreadyExists(err) && !runsOnce(o.Object) && m.GetName() != ""
}

// refused gives a server's refusal the manifest's place, one line per fault.
func refused(o manifest.Object, err error) error {
	if m, bad := meta.Accessor(o.Object); bad == nil && m.GetName() != "" && apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%s: %s %s/%s already exists; delete it first (wherry kubectl delete %[2]s -n %[3]s %[4]s) or use %[5]s",
			place(o), strings.ToLower(o.GVK.Kind), m.GetNamespace(), m.GetName(), nameOfItsOwn(o))
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return fmt.Errorf("%s: %w", place(o), err)
	}
	var lines []string
	for _, c := range status.Status().Details.Causes {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", place(o), c.Field, c.Message), ": "))
	}
	return &refusal{text: strings.Join(lines, "\n"), err: err}
}

type refusal struct {
	text string
	err  error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.err }

// place is where an object came from. A command line has no lines.
func place(o manifest.Object) string {
	if o.Line == 0 {
		return o.Source
	}
	return fmt.Sprintf("%s:%d", o.Source, o.Line)
}

// nameOfItsOwn says how a pod gets a name that no other has.
func nameOfItsOwn(o manifest.Object) string {
	if o.Line == 0 {
		return "another --name"
	}
	return "generateName"
}

// defaultNamespace puts an object without a namespace into the run's.
func (r *Runner) defaultNamespace(obj runtime.Object) (m metav1.Object, namespace string) {
	m, err := meta.Accessor(obj)
	if err != nil { // the manifest was decoded into API types, which all have metadata
		return &metav1.ObjectMeta{}, ""
	}
	if _, ok := clusterWideFor(r.Client, obj); ok {
		return m, ""
	}
	if m.GetNamespace() == "" {
		m.SetNamespace(r.Options.Namespace)
	}
	return m, m.GetNamespace()
}

// create makes the objects: everything else first, then what runs. It returns what it made also on an error.
func (r *Runner) create(ctx context.Context, objects []manifest.Object) (*created, error) {
	made := &created{}
	for _, runs := range []bool{false, true} {
		for _, o := range objects {
			if runs != (isPod(o.Object) || isWorkload(o.Object)) {
				continue
			}
			if err := r.put(ctx, o, made); err != nil {
				return made, err
			}
		}
	}
	return made, nil
}

// createTime bounds the creation of one object.
const createTime = time.Minute

func (r *Runner) put(ctx context.Context, o manifest.Object, made *created) error {
	m, ns := r.defaultNamespace(o.Object)
	v, _ := verbsFor(r.Client, ns, o.Object)
	there, err := isThere(ctx, v, o, m)
	if err != nil {
		return refused(o, err)
	}
	if there {
		return r.update(ctx, o, m, v, made)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	// One that is cut off half-way may have been done all the same, and nobody would remove it.
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTime)
	defer cancel()
	obj, err := v.create(whole, metav1.CreateOptions{FieldManager: fieldManager,
		FieldValidation: metav1.FieldValidationStrict})
	if quicker(err, o, m) {
		return r.update(ctx, o, m, v, made)
	}
	if err != nil {
		return refused(o, err)
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		made.pods = append(made.pods, pod)
		r.Screen.Say("pod %s/%s created", pod.Namespace, pod.Name)
		return nil
	}
	got, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	kind := strings.ToLower(o.GVK.Kind)
	if isWorkload(obj) {
		made.workloads = append(made.workloads, newWorkload(o, obj, got, v, true))
	} else {
		made.others = append(made.others, other{got.GetName(), kind, got.GetUID(), v})
	}
	r.Screen.Say("%s %s created", kind, got.GetName())
	return nil
}

// update brings an object that was there before to what the manifest says. It is not the run's to remove.
func (r *Runner) update(ctx context.Context, o manifest.Object, m metav1.Object, v verbs, made *created) error {
	before := ""
	if was, err := v.get(ctx, m.GetName()); err == nil {
		before = versionOf(was)
	}
	obj, err := apply(ctx, o, m, v)
	if err != nil {
		return refused(o, err)
	}
	got, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if isWorkload(obj) {
		made.workloads = append(made.workloads, newWorkload(o, obj, got, v, false))
	}
	kind, what := strings.ToLower(o.GVK.Kind), "updated"
	if before != "" && got.GetResourceVersion() == before {
		what = "unchanged"
	}
	made.spared = append(made.spared, kind+"/"+m.GetName())
	r.Screen.Say("%s %s %s", kind, m.GetName(), what)
	return nil
}

// versionOf is an object's resource version.
func versionOf(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}

// showSpared says once what a run that deletes what it made leaves, since it was there before.
func (r *Runner) showSpared(made *created) {
	for _, name := range made.spared {
		r.Screen.Say("%s was there before and stays", name)
	}
	made.spared = nil
}

func apply(ctx context.Context, o manifest.Object, m metav1.Object, v verbs, dry ...string) (runtime.Object, error) {
	copied := o.Object.DeepCopyObject()
	copied.GetObjectKind().SetGroupVersionKind(o.GVK)
	body, err := json.Marshal(copied)
	if err != nil {
		return nil, err
	}
	return v.apply(ctx, m.GetName(), body, metav1.PatchOptions{FieldManager: fieldManager, Force: ptr.To(true),
		DryRun: dry, FieldValidation: metav1.FieldValidationStrict})
}

// removeOthers deletes the objects beside the pods, last made first. What has been made anew meanwhile is not the
// run's.
func (r *Runner) removeOthers(ctx context.Context, made *created) error {
	var errs []error
	for i := len(made.others) - 1; i >= 0; i-- {
		o := made.others[i]
		err := o.verbs.delete(ctx, o.name, metav1.DeleteOptions{
			Preconditions: metav1.NewUIDPreconditions(string(o.uid)),
		})
		switch {
		case err == nil || apierrors.IsNotFound(err):
			r.Screen.Say("%s %s removed", o.kind, o.name)
		case apierrors.IsConflict(err): // another one of that name, or one that is going already
			r.Screen.Say("%s %s is left alone: %v", o.kind, o.name, err)
		default:
			errs = append(errs, fmt.Errorf("delete %s %s: %w", o.kind, o.name, err))
		}
	}
	return errors.Join(errs...)
}
