from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0028_installation_release")]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="crash",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
    ]
