from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0053_audit_without_truncate"),
    ]

    operations = [
        migrations.AlterField(
            model_name="attemptstage",
            name="name",
            field=models.CharField(
                choices=[
                    ("launch", "Provisioning"),
                    ("setup", "Setting up"),
                    ("workers", "Starting workers"),
                    ("run", "Running"),
                    ("teardown", "Terminating"),
                ],
                max_length=10,
            ),
        ),
    ]
