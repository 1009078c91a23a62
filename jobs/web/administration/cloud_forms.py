"""The forms for credentials of clouds, one for each kind. Secrets are never sent back."""

from __future__ import annotations

from typing import Any

from django import forms

from jobs.web.base.forms import SecretValue

_PLAIN: dict[str, Any] = {"autocomplete": "off", "spellcheck": "false"}


def _text(label: str, *, required: bool = True, **options: Any) -> forms.CharField:
    widget = forms.TextInput(_PLAIN)
    return forms.CharField(label=label, required=required, widget=widget, **options)


def _secret(label: str, rows: int = 1, *, required: bool = True, **options: Any) -> forms.CharField:
    widget = SecretValue({**_PLAIN, "rows": rows, "class": "mono"})
    return forms.CharField(label=label, strip=False, required=required, widget=widget, **options)


class CloudForm(forms.Form):
    """Credentials of one kind of cloud. `values` are those that were typed."""

    title = ""
    about = ""

    def values(self) -> dict[str, str]:
        """Return the fields that are not empty, with LF line ends: browsers send CR LF."""
        typed = {name: value.replace("\r\n", "\n") for name, value in self.cleaned_data.items()}
        return {name: value for name, value in typed.items() if value.strip()}


class AwsForm(CloudForm):
    """A key pair of AWS."""

    title = "AWS"
    about = "A key pair of an IAM user. A profile of the same name is replaced."
    profile = _text("Profile", required=False, initial="default")
    access_key_id = _text("Access key ID")
    secret_access_key = _secret("Secret access key")
    session_token = _secret("Session token", required=False)


class AzureForm(CloudForm):
    """A service principal of Azure."""

    title = "Azure"
    about = "A service principal with a client secret. An earlier one is replaced."
    subscription_id = _text("Subscription ID")
    tenant_id = _text("Tenant ID")
    client_id = _text("Client ID")
    client_secret = _secret("Client secret")


class GcpForm(CloudForm):
    """The key file of a service account."""

    title = "Google Cloud"
    about = "The key of a service account. An earlier one is replaced."
    file = _secret("Key file, JSON", 8)


class KubernetesForm(CloudForm):
    """A kubeconfig."""

    title = "Kubernetes"
    about = "All contexts of a kubeconfig are stored. Contexts of the same names are replaced."
    file = _secret("Kubeconfig, YAML", 8)


class LambdaForm(CloudForm):
    """An API key of Lambda Cloud."""

    title = "Lambda Cloud"
    about = "An API key. An earlier one is replaced."
    api_key = _secret("API key")


class SlurmForm(CloudForm):
    """A login node of Slurm."""

    title = "Slurm"
    about = "A login node that is reached by ssh. A cluster of the same name is replaced."
    name = _text("Name")
    host = _text("Login node")
    user = _text("Account")
    port = _text("Port", required=False, initial="22")
    proxy_jump = _text("Jump host", required=False, help_text="user@host:port")
    key = _secret("Private key without a passphrase", 8)


FORMS: dict[str, type[CloudForm]] = {
    "aws": AwsForm,
    "azure": AzureForm,
    "gcp": GcpForm,
    "kubernetes": KubernetesForm,
    "lambda": LambdaForm,
    "slurm": SlurmForm,
}
