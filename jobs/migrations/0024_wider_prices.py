"""Room for what very many machines cost: prices of an hour had to be below a million US$."""

from django.db import migrations, models


def _usd(**options: bool) -> models.DecimalField:
    return models.DecimalField(max_digits=20, decimal_places=6, **options)


class Migration(migrations.Migration):
    dependencies = [("jobs", "0023_what_clusters_hold")]

    operations = [
        migrations.AlterField("attempt", "usd", _usd(null=True, blank=True)),
        migrations.AlterField("budgetnotice", "usd", _usd()),
        migrations.AlterField("cluster", "usd", _usd(null=True, blank=True)),
        migrations.AlterField("cluster", "usd_per_hour", _usd(null=True, blank=True)),
        migrations.AlterField("expectedprice", "usd_per_hour", _usd(null=True, blank=True)),
    ]
