// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	k8svalidation "k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/cluster/debugapi/options"
	"github.com/wherryproject/wherry/internal/quantities"
)

// Values is what can be chosen, as the chart's values.yaml has it, which says what each is for.
type Values struct {
	Namespace        string   `json:"namespace"`
	CreateNamespace  bool     `json:"createNamespace"`
	Image            string   `json:"image"` // empty: [Image] of the version
	ImagePullPolicy  string   `json:"imagePullPolicy"`
	ImagePullSecrets []string `json:"imagePullSecrets"`
	PriorityClass    string   `json:"priorityClass"`
	Agent            Agent    `json:"agent"`
	API              API      `json:"api"`
	Limits           Limits   `json:"limits"`
	Aggregate        bool     `json:"aggregateToDefaultRoles"`
}

// Agent is what can be chosen of the agents.
type Agent struct {
	NodeSelector map[string]string           `json:"nodeSelector"`
	Tolerations  []corev1.Toleration         `json:"tolerations"`
	CRISocket    string                      `json:"criSocket"`
	Resources    corev1.ResourceRequirements `json:"resources"`
}

// API is what can be chosen of the aggregated API.
type API struct {
	Replicas     int                         `json:"replicas"`
	NodeSelector map[string]string           `json:"nodeSelector"`
	Tolerations  []corev1.Toleration         `json:"tolerations"`
	Resources    corev1.ResourceRequirements `json:"resources"`
}

// Limits are those of a session: a duration and a quantity.
type Limits struct {
	MaxTTL    string `json:"maxTTL"`
	MaxMemory string `json:"maxMemory"`
}

// Parse reads files of values, as Helm does: each says what is other than the defaults and than the files before it, a
// null takes something away. An unknown key is an error.
func Parse(texts ...[]byte) (Values, error) {
	all, err := valuesFile()
	if err != nil {
		return Values{}, err
	}
	for _, text := range texts {
		var given map[string]any
		if err := yaml.UnmarshalStrict(text, &given); err != nil {
			return Values{}, fmt.Errorf("not a file of values: %w", err)
		}
		merge(all, given)
	}
	merged, err := yaml.Marshal(all)
	if err != nil {
		return Values{}, err
	}
	var v Values
	if err := yaml.UnmarshalStrict(merged, &v); err != nil {
		return Values{}, fmt.Errorf("not a file of values: %w", err)
	}
	return v, nil
}

// merge puts what was given over the defaults.
func merge(into, given map[string]any) {
	for k, v := range given {
		below, isMap := v.(map[string]any)
		old, wasMap := into[k].(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case isMap && wasMap:
			merge(old, below)
		default:
			into[k] = v
		}
	}
}

// Check says all that is wrong with values; nil if nothing is.
func (v Values) Check() error {
	var errs []error
	wrong := func(key, value string, whys ...string) {
		if len(whys) > 0 {
			errs = append(errs, fmt.Errorf("%s %q: %s", key, value, strings.Join(whys, "; ")))
		}
	}
	wrong("namespace", v.Namespace, k8svalidation.IsDNS1123Label(v.Namespace)...)
	if _, err := reference.ParseNormalizedNamed(v.Image); v.Image != "" && err != nil {
		wrong("image", v.Image, err.Error())
	}
	if all := []string{"Always", "IfNotPresent", "Never"}; !slices.Contains(all, v.ImagePullPolicy) {
		wrong("imagePullPolicy", v.ImagePullPolicy, "use "+strings.Join(all, ", "))
	}
	for _, name := range v.ImagePullSecrets {
		wrong("imagePullSecrets", name, k8svalidation.IsDNS1123Subdomain(name)...)
	}
	if v.PriorityClass != "" {
		wrong("priorityClass", v.PriorityClass, k8svalidation.IsDNS1123Subdomain(v.PriorityClass)...)
	}
	if s := v.Agent.CRISocket; s != "" && !path.IsAbs(strings.TrimPrefix(s, "unix://")) {
		wrong("agent.criSocket", s, "name a socket by its path on the node, such as /run/containerd/containerd.sock")
	}
	for key, labels := range map[string]map[string]string{"agent": v.Agent.NodeSelector, "api": v.API.NodeSelector} {
		if all := validation.ValidateLabels(labels, field.NewPath(key, "nodeSelector")); len(all) > 0 {
			errs = append(errs, all.ToAggregate())
		}
	}
	if v.API.Replicas < 1 || v.API.Replicas > maxReplicas {
		wrong("api.replicas", fmt.Sprint(v.API.Replicas), fmt.Sprintf("use 1 to %d", maxReplicas))
	}
	return errors.Join(append(errs, v.Limits.check()...)...)
}

// maxReplicas bounds the APIs: what all of them do is hand bytes on.
const maxReplicas = 16

// check refuses what the API would not start with: its own rules are asked.
func (l Limits) check() (errs []error) {
	usual := options.DefaultLimits()
	ttl, err := time.ParseDuration(l.MaxTTL)
	if err != nil {
		err = errors.New("use a duration, such as 90m or 8h")
	} else {
		err = options.Limits{TTL: ttl, Memory: usual.Memory, CPUs: usual.CPUs}.Validate()
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("limits.maxTTL %q: %w", l.MaxTTL, err))
	}
	memory, err := quantities.Parse(l.MaxMemory)
	if err != nil {
		err = errors.New("use a quantity, such as 512Mi or 2Gi")
	} else {
		err = options.Limits{TTL: usual.TTL, Memory: memory.Value(), CPUs: usual.CPUs}.Validate()
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("limits.maxMemory %q: %w", l.MaxMemory, err))
	}
	return errs
}

// Label is the label of everything that is installed by [Objects], and of nothing else: Helm puts its own name there.
func Label() metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{
		"app.kubernetes.io/part-of": "wherry-debug", "app.kubernetes.io/managed-by": "wherry"}}
}
