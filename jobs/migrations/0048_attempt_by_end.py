from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0047_user_clock"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(fields=["ended_at"], name="attempt_by_end"),
        ),
    ]
