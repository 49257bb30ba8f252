// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	podsecurityapi "k8s.io/pod-security-admission/admission/api"
	"k8s.io/pod-security-admission/admission/api/load"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/api/imagepolicy"
)

// Names of the plug-ins that can be configured by file, as kube-apiserver has them; ImagePolicy is our own.
const (
	podSecurityPlugin       = "PodSecurity"
	imagePolicyPlugin       = "ImagePolicy"
	mutatingWebhookPlugin   = "MutatingAdmissionWebhook"
	validatingWebhookPlugin = "ValidatingAdmissionWebhook"
)

// admissionConfig is an AdmissionConfiguration: the configuration of plug-ins by name.
type admissionConfig map[string][]byte

// readAdmissionConfig reads the file of --admission-control-config-file ("" is none). A plug-in that could not be
// configured by it is an error: its settings would be silently lost. The library's own reader ends the process when a
// plug-in's file is missing.
func readAdmissionConfig(path string) (admissionConfig, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseAdmissionConfig(path, data, os.ReadFile)
}

// parseAdmissionConfig reads what is in the file path; read reads the files that it names.
func parseAdmissionConfig(path string, data []byte, read func(path string) ([]byte, error)) (admissionConfig, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	data, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	obj, err := runtime.Decode(codecs.UniversalDecoder(), data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file, ok := obj.(*apiserver.AdmissionConfiguration)
	if !ok {
		return nil, fmt.Errorf("%s contains a %s, want an AdmissionConfiguration", path,
			obj.GetObjectKind().GroupVersionKind().Kind)
	}
	known := []string{podSecurityPlugin, imagePolicyPlugin, mutatingWebhookPlugin, validatingWebhookPlugin}
	config := admissionConfig{}
	for _, p := range file.Plugins {
		if !slices.Contains(known, p.Name) {
			return nil, fmt.Errorf("%s: plug-in %q cannot be configured here; choose one of: %s", path, p.Name,
				strings.Join(known, ", "))
		}
		if _, twice := config[p.Name]; twice {
			return nil, fmt.Errorf("%s: plug-in %s is configured twice", path, p.Name)
		}
		if config[p.Name], err = pluginConfig(p, filepath.Dir(path), read); err != nil {
			return nil, fmt.Errorf("%s: plug-in %s: %w", path, p.Name, err)
		}
	}
	return config, nil
}

func pluginConfig(p apiserver.AdmissionPluginConfiguration, folder string,
	read func(path string) ([]byte, error)) ([]byte, error) {
	switch {
	case p.Configuration != nil:
		return p.Configuration.Raw, nil
	case p.Path == "":
		return nil, nil
	case !filepath.IsAbs(p.Path):
		p.Path = filepath.Join(folder, p.Path)
	}
	data, err := read(p.Path)
	if err != nil {
		return nil, err
	}
	data, err = yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Path, err)
	}
	return data, nil
}

// reader is the configuration of a plug-in, nil if it has none: what the library's plug-ins take.
func (c admissionConfig) reader(plugin string) io.Reader {
	if len(c[plugin]) == 0 {
		return nil
	}
	return bytes.NewReader(c[plugin])
}

func (c admissionConfig) podSecurity() (*podsecurityapi.PodSecurityConfiguration, error) {
	config, err := load.LoadFromReader(c.reader(podSecurityPlugin))
	if err != nil {
		return nil, fmt.Errorf("configuration of admission plug-in %s: %w", podSecurityPlugin, err)
	}
	return config, nil
}

// imagePolicies are those of the file: an ImagePolicy or ImagePolicyList, which nobody can change through the API.
func (c admissionConfig) imagePolicies() ([]imagepolicy.ImagePolicy, error) {
	data := c[imagePolicyPlugin]
	if len(data) == 0 {
		return nil, nil
	}
	fail := func(err error) error {
		return fmt.Errorf("configuration of admission plug-in %s: %w", imagePolicyPlugin, err)
	}
	scheme := runtime.NewScheme()
	if err := imagepolicy.AddToScheme(scheme); err != nil {
		return nil, err
	}
	obj, err := runtime.Decode(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(),
		data)
	if err != nil {
		return nil, fail(err)
	}
	var all []imagepolicy.ImagePolicy
	switch o := obj.(type) {
	case *imagepolicy.ImagePolicy:
		all = append(all, *o)
	case *imagepolicy.ImagePolicyList:
		all = o.Items
	default:
		return nil, fail(fmt.Errorf("it is a %T, want an ImagePolicy or ImagePolicyList", obj))
	}
	for i := range all {
		imagepolicy.SetDefaults(&all[i])
		if bad := imagepolicy.Validate(&all[i]).ToAggregate(); bad != nil {
			return nil, fail(fmt.Errorf("policy %q: %w", all[i].Name, bad))
		}
	}
	return all, nil
}
